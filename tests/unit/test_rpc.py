# SPDX-License-Identifier: Apache-2.0
"""What the bus library says of other services' versions and of callers that have gone."""

import logging
import sys
from types import SimpleNamespace
from typing import Any

import kombu.exceptions
import oslo_messaging as messaging
import pytest

from novalite import broker, exception, rpc


def record(error: Exception) -> logging.LogRecord:
    try:
        raise error
    except Exception:
        info = sys.exc_info()
    made = logging.LogRecord("x", logging.ERROR, "f.py", 1, "Exception: %s", ("a",), info)
    assert rpc.Words().filter(made)
    return made


def test_a_newer_message_is_one_line() -> None:
    made = record(messaging.UnsupportedVersion("1.1", method="register"))
    assert made.exc_info is None
    assert "1.1" in made.getMessage() and "[upgrade_levels]" in made.getMessage()


def test_a_caller_that_has_gone_is_one_warning() -> None:
    error = messaging.exceptions.MessageUndeliverable(Exception("x"), "novalite", "reply_1", "m")
    made = record(error)
    assert (made.levelname, made.exc_info) == ("WARNING", None)
    assert made.getMessage() == "An answer was thrown away: who asked has gone"


def test_an_outage_is_one_warning() -> None:
    made = record(exception.DatabaseUnavailable())
    assert (made.levelname, made.exc_info) == ("WARNING", None)
    assert "database is currently unavailable" in made.getMessage()


def test_a_bug_keeps_its_traceback() -> None:
    made = record(ValueError("x"))
    assert made.exc_info is not None
    assert made.getMessage() == "Exception: a"


class Client:
    """Every call is answered with the error of another process."""

    def __init__(self, kind: str):
        self.target = SimpleNamespace(topic="conductor", version="1.1")
        self._kind = kind

    def prepare(self, **_options: Any) -> "Client":
        return self

    def call(self, _context: Any, _method: str, **_args: Any) -> None:
        raise messaging.RemoteError(self._kind, "text", ["traceback"])


def test_an_older_server_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "_told", {})
    for _ in range(3):
        with pytest.raises(exception.VersionUnsupported):
            rpc.call(Client("UnsupportedVersion"), None, "register", 1.0)
    assert [each.getMessage() for each in caplog.records] == [
        "A novalite-conductor does not speak RPC version 1.1, which register needs: upgrade it "
        "first, or set [upgrade_levels] conductor of this service to the version of the oldest one"
    ]


def test_other_errors_pass() -> None:
    with pytest.raises(messaging.RemoteError):
        rpc.call(Client("ValueError"), None, "register", 1.0)


class Sending:
    """A client that looks how long the broker would keep what it sends."""

    def __init__(self, call_monitor_timeout: float | None = None):
        self.call_monitor_timeout = call_monitor_timeout

    def prepare(self, **_options: Any) -> "Sending":
        return self

    def call(self, _context: Any, _method: str) -> str | None:
        channel: Any = broker.Channel.__new__(broker.Channel)
        made = channel.prepare_message("x", properties={"expiration": "8000", "app_id": "a"})
        assert made.properties["app_id"] == "a"
        return str(made.properties["expiration"])


@pytest.mark.parametrize(
    ("timeout", "monitor", "kept"),
    [(8.0, None, "4000"), (1800.0, 10.0, "5000"), (4.0, 10.0, "2000")],
)
def test_the_broker_keeps_a_call_for_half_its_time(
    timeout: float, monitor: float | None, kept: str
) -> None:
    assert rpc.call(Sending(monitor), None, "ping", timeout) == kept
    # What is sent outside of a call is none of its business.
    assert Sending().call(None, "ping") == "8000"


def test_a_cast_is_kept_for_ever() -> None:
    channel: Any = broker.Channel.__new__(broker.Channel)
    with broker.keep(1.0):
        assert "expiration" not in channel.prepare_message("x").properties


def test_an_answer_that_came_too_late_is_named_with_its_queue() -> None:
    made = logging.LogRecord(
        "x", logging.INFO, "f.py", 1, "No calling threads waiting for msg_id : %s", ("m1",), None
    )
    assert rpc.LateAnswers(lambda: "reply_1").filter(made)
    assert made.getMessage() == "The answer to m1 in reply_1 came too late and is thrown away"
    other = logging.LogRecord("x", logging.INFO, "f.py", 1, "other %s", ("m1",), None)
    assert rpc.LateAnswers(lambda: "reply_1").filter(other)
    assert other.getMessage() == "other m1"


class Broken:
    """A client whose calls fail."""

    call_monitor_timeout = None

    def __init__(self, error: Exception):
        self._error = error

    def prepare(self, timeout: float) -> "Broken":
        return self

    def call(self, _context: object, _method: str) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        messaging.MessagingTimeout(),
        messaging.exceptions.MessageDeliveryFailure(),
        kombu.exceptions.OperationalError("refused"),
    ],
)
def test_a_call_without_a_broker_says_so_whatever_the_library_raises(error: Exception) -> None:
    with pytest.raises(exception.BusUnavailable) as caught:
        rpc.call(Broken(error), None, "ping", 1.0)
    assert caught.value.__cause__ is error
