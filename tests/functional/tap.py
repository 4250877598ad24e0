# SPDX-License-Identifier: Apache-2.0
"""A second ear on the bus: keeps what is sent to a server and can send it once more."""

import json
import uuid
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import kombu

from tests.functional.waiting import eventually

EXCHANGE = "novalite"


@dataclass(frozen=True, slots=True)
class Sent:
    """One message as it was on the bus."""

    key: str
    body: bytes
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The method that it asks for."""
        return str(self._inner()["method"])

    def _inner(self) -> dict[str, Any]:
        inner: dict[str, Any] = json.loads(json.loads(self.body)["oslo.message"])
        return inner

    def renewed(self, key: str | None = None) -> "Sent":
        """Return it with an id that no cache of seen ids knows, for another server if wanted."""
        outer = json.loads(self.body)
        outer["oslo.message"] = json.dumps({**self._inner(), "_unique_id": uuid.uuid4().hex})
        return Sent(key or self.key, json.dumps(outer).encode(), self.properties)


class Tap:
    """Listens to the messages for some routing keys while the ``with`` block runs.

    :param url: transport_url
    :param keys: TOPIC or TOPIC.HOST
    """

    def __init__(self, url: str, *keys: str):
        self._connection = kombu.Connection(url.replace("rabbit://", "amqp://", 1))
        self._keys = keys
        self._messages: list[Sent] = []

    def __enter__(self) -> "Tap":
        self._connection.connect()
        self._exchange = kombu.Exchange(EXCHANGE, type="topic", passive=True)
        queues = [
            kombu.Queue(
                f"tap-{uuid.uuid4().hex}",
                self._exchange,
                routing_key=key,
                exclusive=True,
                durable=False,
            )
            for key in self._keys
        ]
        self._consumer = self._connection.Consumer(queues, no_ack=True, on_message=self._keep)
        self._consumer.consume()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def _keep(self, message: kombu.Message) -> None:
        properties = {
            "content_type": message.content_type,
            "content_encoding": message.content_encoding,
            "headers": message.headers,
        }
        key = str(message.delivery_info["routing_key"])
        body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
        self._messages.append(Sent(key, body, properties))

    def heard(self) -> list[Sent]:
        """Return everything that was sent so far."""
        try:
            while True:
                self._connection.drain_events(timeout=0.05)
        except TimeoutError:
            return list(self._messages)

    def wait(self, method: str, timeout: float = 20.0) -> Sent:
        """Wait for a message that asks for *method*, and return the last one."""
        found = eventually(
            lambda: [sent for sent in self.heard() if sent.method == method],
            timeout,
            f"{method} is sent",
        )
        return found[-1]

    def send(self, *messages: Sent) -> None:
        """Send messages."""
        producer = self._connection.Producer(exchange=self._exchange, auto_declare=False)
        for sent in messages:
            producer.publish(sent.body, routing_key=sent.key, serializer=None, **sent.properties)
