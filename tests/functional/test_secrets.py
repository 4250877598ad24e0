# SPDX-License-Identifier: Apache-2.0
"""No secret is in any log or file, at any level, but in the few files that are there to hold it.

A cloud with every library at its most talkative boots, fails, breaks, reloads and counts; then
everything it has written is searched for every secret that was in play.
"""

import base64
import re
import signal
import stat
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from tests.functional.cloud import PASSWORDS, Cloud

Make = Callable[..., Cloud]

USER_DATA = base64.b64encode(b"marked-user-data-marked-user-data").decode()
ADMIN_PASS = "marked-admin-pass-7151"
# Each library that we use, down to what it sends and receives.
TALK = ",".join(
    f"{name}=DEBUG"
    for name in (
        "amqp",
        "kombu",
        "oslo.messaging",
        "oslo_messaging",
        "oslo_policy",
        "sqlalchemy",
        "sqlalchemy.engine",
        "alembic",
        "urllib3",
        "urllib3.connectionpool",
        "keystonemiddleware",
        "keystoneauth",
        "keystoneauth.session",
        "keystoneauth.identity",
        "stevedore",
        "eventlet.wsgi",
        "cheroot",
        "falcon",
    )
)


class Secrets:
    """What must not be seen, and the files that may hold some of it."""

    def __init__(self, cloud: Cloud):
        url = urllib.parse.urlsplit(cloud.transport_url)
        self.values = {f"password of {name}": word for name, word in PASSWORDS.items()}
        self.values["password at the broker"] = urllib.parse.unquote(str(url.password))
        self.values["user data"] = USER_DATA
        self.values["adminPass"] = ADMIN_PASS
        self.values["user data, decoded"] = base64.b64decode(USER_DATA).decode()

    def hits(self, file: Path) -> set[str]:
        content = file.read_bytes()
        return {name for name, value in self.values.items() if value.encode() in content}


def allowed(file: Path, name: str) -> bool:
    """Tell whether a file is made to hold this secret."""
    if name == "user data":
        # The server's row; and what its guest is made from.
        return file.name.startswith(("novalite.db", "fake_libvirt"))
    return is_private(file) and name.startswith("password")


def is_private(file: Path) -> bool:
    """Tell whether a file is one of those that are made to hold passwords."""
    return file.suffix == ".conf" or file.name == "broker.json"


def files(*directories: Path) -> list[Path]:
    return [
        path
        for directory in directories
        for path in sorted(directory.rglob("*"))
        if stat.S_ISREG(path.lstat().st_mode)
    ]


def boot_and_fail(cloud: Cloud, secrets: Secrets) -> None:
    """Play everything that has a secret in it, and what makes logs long."""
    for user in ("admin", "demo"):
        api = cloud.client(user, user)
        secrets.values[f"token of {user}"] = api.headers["X-Auth-Token"]
        server = api.boot(f"vm-{user}", user_data=USER_DATA, adminPass=ADMIN_PASS)
        api.wait(server)
    answer = api.create("generated")
    secrets.values["generated adminPass"] = answer.body["server"]["adminPass"]
    pair = api.post("/os-keypairs", {"keypair": {"name": "made"}})["keypair"]
    secrets.values["private key"] = pair["private_key"].splitlines()[3]
    # Refused at several places, with the secrets in the body.
    for wrong in ({"flavorRef": "none"}, {"networks": "?"}, {"imageRef": "x"}, {"adminPass": 5}):
        fields = {"user_data": USER_DATA, "adminPass": ADMIN_PASS, **wrong}
        assert api.create("wrong", **fields).status == 400
    assert api.create(user_data=USER_DATA + "!").status == 400
    # A failed build with its history.
    cloud.configure({"fake_libvirt": {"fail_spawn": 1.0}}, "compute1")
    cloud.reload("compute1")
    failed = api.boot("fails", user_data=USER_DATA, adminPass=ADMIN_PASS)
    api.wait(failed, "ERROR")
    for name in cloud.names:
        assert cloud.services.process(name).send_signal(signal.SIGUSR2)
    cloud.wait_log("api", "statements|counters")


def test_no_secret_is_written(make_cloud: Make) -> None:
    cloud = make_cloud(
        auth="keystone",
        config={"DEFAULT": {"debug": "true", "default_log_levels": TALK}},
    )
    secrets = Secrets(cloud)
    boot_and_fail(cloud, secrets)
    cloud.reload("api", "conductor", "scheduler", "compute1")
    cloud.stop(*cloud.names)
    assert cloud.broker is not None
    searched = files(cloud.directory, cloud.broker.node.log.parent)
    assert any(re.search(r"api\.log$", str(file)) for file in searched)
    assert "DEBUG" in cloud.log("api") and "DEBUG" in cloud.log("conductor")
    wrong = []
    for file in searched:
        for name in secrets.hits(file):
            if not allowed(file, name):
                wrong.append(f"{file}: {name}")
            elif is_private(file) and stat.S_IMODE(file.stat().st_mode) != 0o600:
                wrong.append(f"{file} may be read by others: {oct(file.stat().st_mode)}")
    size = sum(file.stat().st_size for file in searched)
    print(f"\n{len(searched)} files, {size} bytes, searched for {sorted(secrets.values)}")
    print("\n".join(str(file.relative_to(file.parents[2])) for file in searched))
    assert wrong == []
