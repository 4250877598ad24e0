# SPDX-License-Identifier: Apache-2.0
"""The account at the broker: special characters, a wrong password, a changed one. No log has it."""

import datetime
import time
import urllib.parse
from collections.abc import Callable, Iterator

import pytest

from novalite.devcloud.broker import Broker
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

REAL = "p@ss/w:rd#+%="
USER = "u/s:e@r"
OTHER = "another-s3cret"
# The libraries at their most talkative.
TALK = "amqp=DEBUG,kombu=DEBUG,oslo.messaging=DEBUG,oslo_messaging=DEBUG"

# Seconds until a log tells of a refusal; a busy machine gets more where its clock is ours.
SOON = 5.0


def moment(line: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(" ".join(line.split()[:2]))


def encoded(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def binary(text: str) -> str:
    return f'<<"{text}">>'


class Account:
    """An account of the test's own at the broker, with a vhost of the same kind of name."""

    def __init__(self, broker: Broker):
        self.broker = broker
        self.user, self.vhost = binary(USER), binary(REAL)
        everything = ", ".join([binary(".*")] * 3)
        self._eval(
            f"rabbit_auth_backend_internal:add_user({self.user}, {binary(REAL)}, {binary('t')})",
            f"rabbit_vhost:add({self.vhost}, {binary('t')})",
            f"rabbit_auth_backend_internal:set_permissions({self.user}, {self.vhost}, "
            f"{everything}, {binary('t')})",
        )

    def _eval(self, *expressions: str) -> None:
        self.broker._eval(", ".join([*expressions, "ok."]))

    def url(self, password: str) -> str:
        words = map(encoded, (USER, password, REAL))
        return "rabbit://{}:{}@127.0.0.1:{}/{}".format(
            *list(words)[:2], self.broker.port, encoded(REAL)
        )

    def change_password(self, password: str) -> None:
        """Change the password and end what was connected with the old one."""
        self._eval(
            f"rabbit_auth_backend_internal:change_password({self.user}, {binary(password)}, "
            f"{binary('t')})",
            'rabbit_networking:close_all_connections("changed")',
        )

    def remove(self) -> None:
        self._eval(
            f"rabbit_vhost:delete({self.vhost}, {binary('t')})",
            f"rabbit_auth_backend_internal:delete_user({self.user}, {binary('t')})",
        )


@pytest.fixture
def account(broker: Broker | None) -> Iterator[Account]:
    if broker is None:
        pytest.skip("the tests make no accounts at a broker that is not theirs")
    if not broker.alive():
        broker.start()
    made = Account(broker)
    yield made
    made.remove()


def secrets_in_logs(cloud: Cloud) -> list[str]:
    """Return the lines of all logs in which a password stands."""
    words = (REAL, encoded(REAL), OTHER)
    return [
        line
        for name in cloud.names
        for line in cloud.log(name).splitlines()
        if any(word in line for word in words)
    ]


@pytest.fixture
def cloud(make_cloud: Make, account: Account) -> Cloud:
    options = {"debug": True, "default_log_levels": TALK, "transport_url": account.url(REAL)}
    return make_cloud(config={"DEFAULT": options})


@pytest.mark.bus
def test_v38_special_characters_in_user_password_and_vhost(cloud: Cloud) -> None:
    api = cloud.api
    api.wait(api.boot())
    assert cloud.grep("conductor", "oslo.messaging.* Connected to AMQP server"), "debug is on"
    assert secrets_in_logs(cloud) == []


def test_v39_wrong_password_at_the_start(cloud: Cloud, account: Account) -> None:
    cloud.stop("conductor")
    lines = len(cloud.log("conductor").splitlines())
    cloud.configure({"DEFAULT": {"transport_url": account.url(OTHER)}}, "conductor")
    cloud.launch("conductor")
    cloud.wait_dead("conductor")
    new = "\n".join(cloud.log("conductor").splitlines()[lines:])
    port = account.broker.port
    assert f"access refused for user {USER} at 127.0.0.1:{port}" in new
    assert "unreachable" not in new and "Traceback" not in new
    began, ended = (
        moment(next(line for line in new.splitlines() if text in line))
        for text in ("starts on", "access refused")
    )
    assert (ended - began).total_seconds() < SOON
    assert secrets_in_logs(cloud) == []


@pytest.mark.bus
def test_v39_password_changed_while_running(cloud: Cloud, account: Account) -> None:
    account.change_password(OTHER)
    changed = time.monotonic()
    refused = rf"access refused for user {USER} at 127.0.0.1:{account.broker.port}"

    def delays(name: str) -> list[int]:
        tries = cloud.grep(name, rf"{refused}.*trying again in")
        return [int(line.partition("trying again in ")[2].split()[0]) for line in tries]

    for name in ("conductor", "scheduler", "compute1"):
        # The library begins anew now and then, with its first delay, before the delay grows.
        eventually(lambda name=name: max(delays(name), default=0) > 1, 60.0, "the delay grows")
        took = time.monotonic() - changed
        # Three connections, each at most twice a second.
        assert len(delays(name)) < 6 * (took + 1), "not all the time"
        assert cloud.alive(name)
    account.change_password(REAL)
    api = cloud.api
    api.wait(api.boot())
    assert secrets_in_logs(cloud) == []
