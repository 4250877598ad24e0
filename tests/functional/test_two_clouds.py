# SPDX-License-Identifier: Apache-2.0
"""Two clouds of ``novalite up`` side by side: on loopback only, private files, nothing is left."""

import ipaddress
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.test_devcloud import User
from tests.functional.waiting import eventually

_LISTEN = "0A"


def addresses(pids: list[int]) -> set[tuple[str, int]]:
    """Return what these processes listen on, TCP and UDP."""
    inodes = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and (fields[3] == _LISTEN or name.startswith("udp")):
                found.add(_address(fields[1]))
    return found


def _address(text: str) -> tuple[str, int]:
    place, _, port = text.partition(":")
    raw = bytes.fromhex(place)
    # Words of four bytes in the machine's order.
    raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port, 16)


def family(user: User) -> list[int]:
    """Return all processes of a cloud: those that name its directory, and their children."""
    found, wave = set(), user.marked()
    wave += [line["pid"] for line in _recorded(user.directory)]
    while wave:
        found.update(wave)
        wave = [child for pid in wave for child in _children(pid) if child not in found]
    return sorted(pid for pid in found if Path(f"/proc/{pid}").exists())


def _recorded(directory: Path) -> list[dict[str, int]]:
    return [json.loads(file.read_text()) for file in directory.rglob("run/*.json")]


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _runs(pid: int) -> bool:
    """Tell whether the process is there and not just waiting for its parent to notice its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return what is in the files that are written once."""
    names = ("cloud.json", "clouds.yaml", "openrc", "novalite.conf")
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for name in names
        for path in directory.rglob(name)
    }


@pytest.fixture
def users(tmp_path: Path) -> Iterator[tuple[User, User]]:
    made = User(tmp_path / "one" / "state"), User(tmp_path / "two" / "state")
    yield made
    for user in made:
        user.run("down")


def up(user: User) -> None:
    """Start a cloud from a shell with a careless umask."""
    done = subprocess.run(
        user.command("up"), capture_output=True, text=True, timeout=150, umask=0o000
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_clouds(users: tuple[User, User]) -> None:
    one, two = users
    up(one)
    before, pids = contents(one.directory), family(one)
    up(two)
    assert contents(one.directory) == before
    assert family(one) == pids

    listening = {user: addresses(family(user)) for user in users}
    print()
    for user in users:
        print(user.directory.parent.name, sorted(listening[user]))
        # The API, three neighbours, AMQP, Erlang's distribution and its epmd.
        assert len(listening[user]) >= 7
        assert {place for place, _port in listening[user]} <= {"127.0.0.1", "::1"}
    assert not listening[one] & listening[two]

    settings = [json.loads((user.directory / "cloud.json").read_text()) for user in users]
    for name in ("admin_password", "demo_password", "service_password"):
        assert len(settings[0][name]) >= 20
        assert settings[0][name] != settings[1][name]
    for user in users:
        loose = [
            f"{oct(path.lstat().st_mode)} {path}"
            for path in (user.directory, *user.directory.rglob("*"))
            if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077
        ]
        assert loose == []

    # A token of one is worth nothing at the other.
    foreign = one.api("novalite", "api_port").headers["X-Auth-Token"]
    client = two.api("novalite", "api_port")
    client.headers["X-Auth-Token"] = foreign
    assert client.request("GET", "/v2.1/servers").status == 401

    gone = family(one)
    one.success("down")
    # Erlang's port programs end by themselves when their node has gone.
    eventually(lambda: not [pid for pid in gone if _runs(pid)], what="nothing is left")
    assert one.marked() == []
    assert not listening[one] & _all_listening()
    assert addresses(family(two)) == listening[two]
    assert two.run("ps").returncode == 0
    two.success("down")
    assert two.marked() == []
    assert not listening[two] & _all_listening()


def _all_listening() -> set[tuple[str, int]]:
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN:
                found.add(_address(fields[1]))
    return found
