# SPDX-License-Identifier: Apache-2.0
"""Cases made from the OpenAPI document, sent to a real API: no 5xx, one shape of errors.

The novalite-api is a process with a real broker, compute and database, SQLite or the one that
NOVALITE_TEST_DATABASE_URL names. The seed of a case is the number of its round.
"""

import http.client
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from novalite.api import errors, microversion
from novalite.api.openapi import document
from tests.functional import fuzz
from tests.functional.cloud import Cloud

pytestmark = pytest.mark.drill

Make = Callable[..., Cloud]
LATEST = microversion.MAX
# Cases of each kind for an operation in one round.
EXAMPLES = 2


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud()


def check(fuzzer: fuzz.Fuzzer, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    for user, tally in fuzzer.tallies.items():
        with capsys.disabled():
            # The output of a worker of xdist is lost, its errors are shown.
            print(f"\n{user}, {what}: {tally}", file=sys.stderr)
        assert tally.problems == []


class TestFuzz:
    @pytest.mark.parametrize("version", [LATEST, 52, 1])
    def test_every_operation(
        self, cloud: Cloud, version: int, rounds: range, capsys: pytest.CaptureFixture[str]
    ) -> None:
        # At former microversions what is another thing there.
        only = fuzz.differs(version) if version < LATEST else lambda _operation: True
        fuzzer = fuzz.Fuzzer(cloud, ("demo", "admin"), version)
        for number in rounds:
            fuzzer.run(seed=number + 1, examples=EXAMPLES, only=only)
        check(fuzzer, f"2.{version}", capsys)
        assert all(tally.requests > 50 for tally in fuzzer.tallies.values())

    def test_odd_bodies_and_headers(self, cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
        fuzzer = fuzz.Fuzzer(cloud, ["admin"], LATEST)
        fuzzer.sweep("admin")
        check(fuzzer, "odd bodies and headers", capsys)
        statuses = fuzzer.tallies["admin"].statuses
        assert statuses[400] > 100 and statuses[415] > 10

    def test_nothing_of_it_is_an_error_of_ours(self, cloud: Cloud) -> None:
        assert cloud.grep("api", "Traceback|Unexpected exception") == []


@pytest.mark.parametrize(
    ("status", "kind", "data", "found"),
    [
        (200, fuzz.JSON, {}, []),
        (400, fuzz.JSON, errors.body(400, "x"), []),
        (500, fuzz.JSON, errors.body(500, "x"), ["a 500"]),
        (200, "text/plain", {}, ["no JSON"]),
        (200, fuzz.JSON, None, ["no JSON inside"]),
        (204, fuzz.JSON, {}, ["status 204 is not in the document"]),
        (404, fuzz.JSON, {}, ["'itemNotFound' is a required property"]),
        (404, fuzz.JSON, errors.body(403, "x"), ["'itemNotFound' is a required property"]),
    ],
)
def test_what_is_found_wrong(status: int, kind: str, data: Any, found: list[str]) -> None:
    headers = http.client.HTTPMessage()
    headers["Content-Type"], headers["X-OpenStack-Request-Id"] = kind, "req-1"
    text = b"" if data is None else json.dumps(data).encode()
    answer = fuzz.Answer(status, headers, text)
    problems = list(fuzz.wrong(document.make(LATEST), "/v2.1/servers", "GET", answer))
    assert problems[: len(found)] == found
    assert bool(problems) == bool(found)
