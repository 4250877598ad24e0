# SPDX-License-Identifier: Apache-2.0
"""The private RabbitMQ node: what it leaves, who may come in, what survives a stop."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import kombu
import pytest

from novalite.devcloud import ports
from novalite.devcloud.broker import Broker, refusal
from novalite.devcloud.errors import BrokerError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "mq")
    yield made
    made.kill()


def listeners(pids: set[int]) -> set[str]:
    """Return the addresses on which processes listen, from /proc."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(link) if link.is_symlink() else ""
            found = re.match(r"socket:\[(\d+)\]", target)
            inodes |= {found[1]} if found else set()
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                addresses.add(fields[1].partition(":")[0])
    return addresses


def test_it_listens_on_loopback_only_and_leaves_nothing(node: Broker) -> None:
    node.start()
    pids = {process.pid for process in node.processes if process.pid}
    assert len(pids) == 2
    loopback = {"0100007F", "00000000000000000000000001000000"}
    assert listeners(pids) <= loopback
    settings = node.settings
    node.stop()
    assert not any(process.alive() for process in node.processes)
    for port in (settings.amqp, settings.distribution, settings.epmd):
        assert ports.is_free(port)
        assert not ports.answers(port)
    assert not list((node.directory / "run").glob("*.json"))


def test_only_its_account_and_its_vhosts_are_let_in(node: Broker) -> None:
    node.start()
    url = node.url()
    assert refusal(url) is None
    wrong = refusal(url.replace(node.settings.password, "wrong"))
    assert wrong is not None and "ACCESS_REFUSED" in wrong and "wrong" not in wrong
    missing = refusal(node.url("nowhere"))
    assert missing is not None and "nowhere" in missing
    added = node.add_vhost("added")
    assert refusal(added) is None
    node.remove_vhost("added")
    assert refusal(added) is not None


def test_queues_survive_a_stop_and_a_kill(node: Broker) -> None:
    node.start()
    url = node.add_vhost("kept").replace("rabbit://", "amqp://")
    with kombu.Connection(url) as connection:
        queue = connection.SimpleQueue("mail")
        queue.put({"first": 1})
        queue.close()
    node.stop()
    assert refusal(url) is not None
    node.start()
    with kombu.Connection(url) as connection:
        queue = connection.SimpleQueue("mail")
        assert queue.get(timeout=10.0).payload == {"first": 1}
        queue.close()
    node.kill()
    again = Broker(node.directory)
    again.start()
    assert again.port == node.port
    assert refusal(url) is None


def test_a_node_that_died_alone_is_started_again(node: Broker) -> None:
    node.start()
    node.node.kill()
    assert node.epmd.alive()
    node.start()
    assert refusal(node.url()) is None


def test_a_taken_port_is_told_and_can_be_left(node: Broker) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", node.port))
        taken.listen()
        with pytest.raises(BrokerError, match=f"port {node.port} .* is taken"):
            node.start()
        assert not node.epmd.alive()
        old = node.port
        node.repick_ports()
        assert node.port != old


@pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can try another user"
)
def test_an_ordinary_user_can_run_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    nobody = pwd.getpwnam("nobody")
    directory = Path("/tmp") / f"novalite-test-{os.getpid()}"
    directory.mkdir(mode=0o700)
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    script = (
        "from pathlib import Path\n"
        "from novalite.devcloud.broker import Broker, refusal\n"
        f"node = Broker(Path('{directory}/mq'))\n"
        "node.start()\n"
        "print('in' if refusal(node.add_vhost('x')) is None else 'out')\n"
        "node.stop()\n"
    )
    command = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    # The interpreter may live where only root can read; then there is nothing to try.
    if subprocess.run([*command, sys.executable, "-c", "import novalite"], cwd=ROOT).returncode:
        shutil.rmtree(directory)
        pytest.skip("another user cannot read this interpreter")
    try:
        done = subprocess.run(
            [*command, sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True
        )
        assert done.stdout == "in\n", done.stderr
    finally:
        shutil.rmtree(directory)
