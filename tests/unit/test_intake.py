# SPDX-License-Identifier: Apache-2.0
"""What a server takes from the broker under more work than it can do, and whom it answers."""

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import oslo_messaging as messaging
import pytest
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver, common

from novalite import counters, intake, rpc
from novalite.conf import messaging as messaging_options

THREADS = 2
LIMIT = THREADS * intake.TASKS_PER_THREAD


class Message(dict[str, Any]):
    """A message as the library hands it over; it notes what becomes of it."""

    def __init__(self, expiration: str | None = None, reply_q: str | None = None):
        number = uuid.uuid4().hex
        super().__init__(_unique_id=number, _msg_id=number, _reply_q=reply_q, method="ping")
        properties = {} if expiration is None else {"expiration": expiration}
        self._raw_message = SimpleNamespace(properties=properties)
        self.fate: list[str] = []

    def acknowledge(self) -> None:
        self.fate.append("acknowledged")

    def requeue(self) -> None:
        self.fate.append("requeued")


class Consumer:
    """A consumer that can be cancelled, or fails to be."""

    def __init__(self, error: Exception | None = None):
        self.error = error
        self.cancelled: list[int] = []

    def cancel(self, tag: int) -> None:
        if self.error is not None:
            raise self.error
        self.cancelled.append(tag)


class Connection:
    """The connection of a listener; it sends what it is given when it is read."""

    def __init__(self) -> None:
        self.listener: Any = None
        self.coming: list[Message] = []
        self.reads = 0
        self.read = threading.Event()
        self.consumer = Consumer()
        self._consumers = {self.consumer: 7}

    def consume(self, timeout: float) -> None:
        self.reads += 1
        self.read.set()
        if not self.coming:
            raise common.Timeout()
        self.listener(self.coming.pop(0))

    def stop_consuming(self) -> None:
        """Nothing is blocked here."""


class Driver:
    """What a listener and its messages need of the driver."""

    prefetch_size = 0
    missing_destination_retry_timeout = 15

    def __init__(self) -> None:
        self.conf = SimpleNamespace(executor_thread_pool_size=THREADS)
        self.sent: list[tuple[str, Any]] = []
        self.missing: set[str] = set()
        self.tries: list[str] = []

    @contextmanager
    def _get_connection(self, _purpose: str) -> Iterator["Driver"]:
        yield self

    def direct_send(self, reply_q: str, _message: Any) -> None:
        self.tries.append(reply_q)
        if reply_q in self.missing:
            raise messaging.MessageUndeliverable(Exception("x"), "", reply_q, "m")
        self.sent.append((reply_q, _message))


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.fixture
def listener(driver: Driver, connection: Connection) -> Iterator[intake.Listener]:
    made = intake.Listener(driver, connection)
    connection.listener = made
    yield made
    made._message_operations_handler.stop()


def take(listener: intake.Listener, count: int) -> list[intake.Incoming]:
    taken = []
    for _ in range(count):
        [incoming] = listener.poll()
        listener.gate.enter()
        taken.append(incoming)
    return taken


def test_no_more_is_taken_than_there_is_room_for(
    listener: intake.Listener, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_LOOK", 0.01)
    messages = [Message() for _ in range(LIMIT + 2)]
    connection.coming = list(messages)
    take(listener, LIMIT)
    waiting = threading.Thread(target=take, args=(listener, 1), daemon=True)
    connection.read.clear()
    waiting.start()
    # It reads on meanwhile, as heartbeats need it, and acknowledges nothing of that.
    assert connection.read.wait(5.0)
    assert [len(message.fate) for message in messages] == [1] * LIMIT + [0, 0]
    assert waiting.is_alive() and listener.gate.pressed
    listener.gate.leave()
    waiting.join(5.0)
    assert not waiting.is_alive()
    assert [message.fate for message in messages[:-1]] == [["acknowledged"]] * (LIMIT + 1)
    assert messages[-1].fate == []


def test_a_stop_ends_the_wait_and_gives_back_what_is_held(
    listener: intake.Listener, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.coming = [Message() for _ in range(LIMIT)]
    take(listener, LIMIT)
    held = Message()
    listener(held)
    polled: list[Any] = []
    thread = threading.Thread(target=lambda: polled.append(listener.poll()), daemon=True)
    thread.start()
    listener.stop()
    thread.join(5.0)
    assert polled == [[]]
    assert held.fate == ["requeued"]
    assert connection.consumer.cancelled == [7]


def test_a_stop_without_a_broker_is_a_stop(
    listener: intake.Listener, connection: Connection
) -> None:
    connection.consumer.error = ConnectionResetError()
    listener(Message())
    listener._shutdown.set()
    assert listener.poll() == []
    assert not listener._held


def test_a_message_that_is_not_ours_any_more_is_left(
    listener: intake.Listener, connection: Connection
) -> None:
    """The connection was lost while it was held: the broker sends it to somebody again."""

    def lost() -> None:
        raise ConnectionResetError

    old, new = Message(), Message()
    old.acknowledge = lost  # type: ignore[method-assign]
    number = new["_msg_id"]
    connection.coming = [old, new]
    [incoming] = take(listener, 1)
    assert incoming.msg_id == number


@pytest.mark.parametrize(
    ("pressed", "waited", "late"),
    [(False, 1.4, False), (False, 1.6, True), (True, 0.4, False), (True, 0.6, True)],
)
def test_a_call_waits_here_for_a_part_of_its_time(
    listener: intake.Listener, connection: Connection, pressed: bool, waited: float, late: bool
) -> None:
    connection.coming = [Message(expiration="1000")]
    listener.gate.pressed = pressed
    [incoming] = take(listener, 1)
    incoming.came_at = time.monotonic() - waited
    assert incoming.is_late() is late


def test_a_cast_is_never_late(listener: intake.Listener, connection: Connection) -> None:
    connection.coming = [Message()]
    [incoming] = take(listener, 1)
    incoming.came_at = 0.0
    assert not incoming.is_late()


def test_the_press_is_over_when_nothing_is_in_hand() -> None:
    gate = intake.Gate(1)
    assert gate.wait(0.0) and not gate.pressed
    gate.enter()
    assert not gate.wait(0.0) and gate.pressed
    gate.leave()
    assert gate.wait(0.0) and not gate.pressed


# -- answers


class Quiet(intake.Answers):
    """Keeps answers without a thread of its own."""

    def keep(self, incoming: intake.Incoming, reply: Any, failure: Any) -> None:
        self._kept.append((self._patience, incoming, reply, failure))


def test_an_asker_that_is_away_holds_nobody(
    listener: intake.Listener, connection: Connection, driver: Driver
) -> None:
    listener.answers = Quiet(15.0)
    driver.missing = {"reply_away"}
    connection.coming = [Message(reply_q=name) for name in ("reply_away", "reply_away", "reply_1")]
    for incoming in take(listener, 3):
        incoming.reply("x")
    assert [queue for queue, _ in driver.sent] == ["reply_1"]
    driver.tries.clear()
    listener.answers.try_again(1.0)
    # Once for both of its answers.
    assert driver.tries == ["reply_away"]
    driver.missing = set()
    listener.answers.try_again(2.0)
    assert [queue for queue, _ in driver.sent] == ["reply_1", "reply_away", "reply_away"]


def test_an_asker_that_stays_away_has_gone(
    listener: intake.Listener,
    connection: Connection,
    driver: Driver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener.answers = Quiet(15.0)
    driver.missing = {"reply_gone"}
    connection.coming = [Message(reply_q="reply_gone") for _ in range(3)]
    first, second, third = take(listener, 3)
    first.reply("x")
    second.reply("x")
    listener.answers.try_again(16.0)
    listener.answers.try_again(17.0)
    driver.tries.clear()
    third.reply("x")
    assert driver.tries == []
    told = [each for each in caplog.records if each.levelname == "WARNING"]
    assert len(told) == 3 and not any(each.exc_info for each in told)


def test_kept_answers_are_sent_by_a_thread_of_their_own(
    listener: intake.Listener,
    connection: Connection,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intake, "_AGAIN", 0.0)
    driver.missing = {"reply_late"}
    sent = threading.Event()
    send = driver.direct_send

    def direct_send(reply_q: str, message: Any) -> None:
        driver.missing.clear()
        send(reply_q, message)
        sent.set()

    connection.coming = [Message(reply_q="reply_late")]
    [incoming] = take(listener, 1)
    assert not incoming.try_reply("x", None)
    monkeypatch.setattr(driver, "direct_send", direct_send)
    listener.answers.keep(incoming, "x", None)
    assert sent.wait(5.0)


# -- the server


class Done(Exception):
    """A task failed."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, listener: intake.Listener) -> intake.Server:
    monkeypatch.setattr(
        intake.rpc_server.RPCServer,
        "_create_listener",
        lambda _server: SimpleNamespace(_poll_style_listener=listener),
    )
    conf = cfg.ConfigOpts()
    messaging_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    made = rpc.Bus(conf).server(messaging.Target(topic="conductor", server="a"), [])
    made._create_listener()
    assert isinstance(made, intake.Server)
    return made


def test_the_bus_makes_such_servers_and_listeners(server: intake.Server) -> None:
    assert amqpdriver.RpcAMQPListener is intake.Listener


@pytest.mark.parametrize("error", [None, Done()])
def test_what_is_done_makes_room(
    server: intake.Server,
    listener: intake.Listener,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
) -> None:
    seen: list[int] = []

    def work(_server: Any, _incoming: Any) -> None:
        seen.append(listener.gate._count)
        if error is not None:
            raise error

    def submit(run: Any, what: Any) -> None:
        """An error of a task stays in the library's executors."""
        with contextlib.suppress(Done):
            run(what)

    monkeypatch.setattr(intake.rpc_server.RPCServer, "_process_incoming", work)
    connection.coming = [Message()]
    server._work_executor = SimpleNamespace(submit=submit)
    server._on_incoming(listener.poll())
    assert (seen, listener.gate._count) == ([1], 0)


def test_what_cannot_be_started_makes_room(
    server: intake.Server, listener: intake.Listener, connection: Connection
) -> None:
    def submit(_run: Any, _what: Any) -> None:
        raise RuntimeError("shut down")

    connection.coming = [Message()]
    server._work_executor = SimpleNamespace(submit=submit)
    with pytest.raises(RuntimeError):
        server._on_incoming(listener.poll())
    assert listener.gate._count == 0


def test_a_late_call_is_not_carried_out(
    server: intake.Server,
    listener: intake.Listener,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(
        intake.rpc_server.RPCServer, "_process_incoming", lambda _server, each: done.append(each)
    )
    connection.coming = [Message(expiration="1000") for _ in range(3)]
    before = counters.snapshot().get("late_calls", 0)
    late, later, fresh = take(listener, 3)
    late.came_at = later.came_at = 0.0
    for incoming in (late, later, fresh):
        server._process_incoming([incoming])
    assert done == [[fresh]]
    assert listener.gate._count == 0
    assert counters.snapshot()["late_calls"] == before + 2
    [told] = [each for each in caplog.records if each.name == "novalite.intake"]
    assert told.getMessage().startswith("conductor: 1 calls waited too long")
