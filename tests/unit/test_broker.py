# SPDX-License-Identifier: Apache-2.0
"""What stands between the bus library and the broker: names, passwords and refusals."""

import logging
import socket
import threading
import urllib.parse
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import amqp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu import connection as kombu_connection
from kombu.transport import pyamqp
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver, impl_rabbit

from novalite import broker
from novalite.conf import messaging

REAL = "p@ss/w:rd#+%="
LOGIN = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."
NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def conf_with(url: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    messaging.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("transport_url", url)
    return conf


def make_url(user: str, password: str, vhost: str, host: str = "localhost:5672") -> str:
    words = [urllib.parse.quote(word, safe="") for word in (user, password, vhost)]
    return f"rabbit://{words[0]}:{words[1]}@{host}/{words[2]}"


def seen_by_amqp(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what a login is made with, when the library uses *url* and hands it to kombu."""
    target = broker.url(conf_with(url))
    text = impl_rabbit.Connection._transform_transport_url(None, target, target.hosts[0])
    seen: dict[str, Any] = {}

    class Connection:
        def __init__(self, **options: Any):
            seen.update(options)

        def connect(self) -> None:
            pass

    monkeypatch.setattr(broker.Transport, "Connection", Connection)
    made: Any = kombu_connection.Connection
    made(text).transport.establish_connection()
    return seen


@given(user=NAMES, password=NAMES, vhost=NAMES)
def test_v38_names_and_password_arrive_as_they_are(user: str, password: str, vhost: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        seen = seen_by_amqp(make_url(user, password, vhost), monkeypatch)
    assert (seen["userid"], seen["password"], seen["virtual_host"]) == (user, password, vhost)


def test_v38_example(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_by_amqp(make_url(REAL, REAL, REAL), monkeypatch)
    assert (seen["userid"], seen["password"], seen["virtual_host"]) == (REAL, REAL, REAL)


def test_defaults_are_those_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_by_amqp("rabbit://", monkeypatch)
    assert (seen["userid"], seen["password"], seen["virtual_host"]) == ("guest", "guest", "/")
    assert seen["host"] == "127.0.0.1:5672"


def test_the_library_never_sees_the_password() -> None:
    assert REAL not in urllib.parse.unquote(str(broker.url(conf_with(make_url("u", REAL, "v")))))


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let the login fail as RabbitMQ refuses it."""
    error = SimpleNamespace(value=amqp.AccessRefused(LOGIN))

    def refuse(_self: Any) -> None:
        raise error.value

    monkeypatch.setattr(pyamqp.Transport, "establish_connection", refuse)
    yield error


def test_v39_refusal_names_user_and_place(refusing: Any) -> None:
    with pytest.raises(broker.Refused) as caught:
        broker.handshake(conf_with(make_url("nova", "geheim", "v", "mq1:5673")))
    assert str(caught.value) == (
        "access refused for user nova at mq1:5673: "
        "Login was refused using authentication mechanism PLAIN"
    )


def test_v39_wrong_virtual_host(refusing: Any) -> None:
    refusing.value = amqp.NotAllowed("NOT_ALLOWED - vhost nope not found")
    with pytest.raises(broker.Refused) as caught:
        broker.handshake(conf_with(make_url("nova", "geheim", "nope", "mq1:5673")))
    assert str(caught.value) == "access refused for user nova at mq1:5673: vhost nope not found"


def test_v39_refusal_can_be_tried_again() -> None:
    """So the library waits longer and longer between its tries, instead of not at all."""
    assert issubclass(broker.Refused, pyamqp.Transport.recoverable_connection_errors)


def record(message: str, **arguments: Any) -> logging.LogRecord:
    made = logging.LogRecord(broker._DRIVER, logging.ERROR, __file__, 1, message, (), None)
    made.args = arguments or ()
    return made


def test_v39_the_log_does_not_say_unreachable() -> None:
    words = broker.Words()
    text = "access refused for user nova at mq1:5672: Login was refused"
    line = record(
        "[%(id)s] AMQP server on %(host)s:%(port)s is unreachable: %(err_str)s. Trying again in "
        "%(sleep_time)d seconds.",
        id="abc",
        host="mq1",
        port=5672,
        err_str=broker.Refused(text),
        sleep_time=3.0,
    )
    assert words.filter(line)
    assert line.getMessage() == f"{text}; trying again in 3 s"


def test_other_lines_stay_as_they_are() -> None:
    words = broker.Words()
    line = record("AMQP server on %(host)s is unreachable: timed out", host="mq1")
    assert words.filter(line)
    assert line.getMessage() == "AMQP server on mq1 is unreachable: timed out"


def test_words_are_put_in_once() -> None:
    logger = logging.getLogger(broker._DRIVER)
    broker.prepare()
    broker.prepare()
    assert sum(isinstance(present, broker.Words) for present in logger.filters) == 1


@pytest.fixture
def mute() -> Iterator[str]:
    """A listener that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_an_idle_connection_is_left_alone() -> None:
    """The library starts to look for notifications with the pause that is set here."""
    broker.prepare()
    listener = amqpdriver.AMQPListener(SimpleNamespace(prefetch_size=0), None)
    assert listener._current_timeout == 0.25


def test_missing_broker_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    address = f"127.0.0.1:{free_port()}"
    assert broker.handshake(conf_with(make_url("nova", "geheim", "v", address))) is False
    assert f"No broker can be reached yet; trying on ({address}: " in caplog.text
    assert "geheim" not in caplog.text


def test_mute_broker_does_not_hold_up_the_start(
    mute: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker, "_TIMEOUT", 0.1)
    assert broker.handshake(conf_with(make_url("nova", "geheim", "v", mute))) is False
    assert "timed out" in caplog.text


def test_the_next_host_of_a_cluster_is_tried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    asked = []

    def establish(self: Any) -> Any:
        asked.append(self.client.hostname)
        if len(asked) == 1:
            raise ConnectionRefusedError("nobody listens")
        return SimpleNamespace(close=threading.Event().set)

    monkeypatch.setattr(pyamqp.Transport, "establish_connection", establish)
    assert broker.handshake(conf_with("rabbit://u:p@mq1:5672,u:p@mq2:5672/v")) is True
    assert asked == ["mq1", "mq2"]
    assert "The broker at mq2:5672 answers" in caplog.text
