# SPDX-License-Identifier: Apache-2.0
"""Requests that are too large, too deep, broken or mean: 400 or 413, never 500."""

import json
import logging
from typing import Any

import pytest

from tests.unit.api.cloud import Cloud

FLAVORS = "/flavors"
LIMIT = 114688


def post(cloud: Cloud, raw: bytes, **kwargs: Any) -> Any:
    headers = {"Content-Type": "application/json", **kwargs.pop("headers", {})}
    return cloud.call("POST", FLAVORS, raw=raw, headers=headers, **kwargs)


def flavor(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"flavor": {"name": name, "vcpus": 1, "ram": 64, "disk": 1, **fields}}


BROKEN = {
    "empty": b"",
    "no json": b"{",
    "a list": b"[]",
    "null": b"null",
    "a number": b"1e999",
    "NaN": b'{"flavor": {"name": "f", "vcpus": NaN, "ram": 64, "disk": 1}}',
    "Infinity": b'{"flavor": {"name": "f", "vcpus": -Infinity, "ram": 64, "disk": 1}}',
    "no UTF-8": b'{"flavor": {"name": "\xff\xfe", "vcpus": 1, "ram": 64, "disk": 1}}',
    "UTF-16": json.dumps(flavor()).encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(flavor()).encode(),
    "raw NUL": b'{"flavor": {"name": "a\0b", "vcpus": 1, "ram": 64, "disk": 1}}',
    "NUL": b'{"flavor": {"name": "a\\u0000b", "vcpus": 1, "ram": 64, "disk": 1}}',
    "NUL in a key": b'{"flavor": {"a\\u0000": 1}}',
    "half a pair": b'{"flavor": {"name": "\\ud800", "vcpus": 1, "ram": 64, "disk": 1}}',
    "a key twice": b'{"flavor": {"name": "a", "name": "b", "vcpus": 1, "ram": 64, "disk": 1}}',
    "a key twice on top": b'{"flavor": {}, "flavor": {"name": "b"}}',
    "33 levels": b'{"flavor": ' + b"[" * 33 + b"]" * 33 + b"}",
    "50000 levels": b"[" * 50000,
    "50000 levels closed": b"[" * 50000 + b"]" * 50000,
    "a long number": b'{"flavor": {"name": "f", "vcpus": ' + b"9" * 50000 + b"}}",
    "a float of many digits": b'{"flavor": {"name": "f", "vcpus": 0.' + b"9" * 50000 + b"}}",
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_broken_bodies(cloud: Cloud, raw: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        result = post(cloud, raw)
    assert result.status_code == 400, result.text
    assert set(result.json) == {"badRequest"}
    assert len(result.text) < 2000
    assert caplog.records == []


def test_a_number_beyond_all_floats(cloud: Cloud) -> None:
    """It would come back as Infinity, which is no JSON."""
    path, body = "/flavors/1/os-extra_specs", b'{"extra_specs": {"a": NUMBER}}'
    for number, status in ((b"1e308", 200), (b"1e309", 400), (b"-1e309", 400), (b"1e-999", 200)):
        raw = body.replace(b"NUMBER", number)
        headers = {"Content-Type": "application/json"}
        assert cloud.call("POST", path, raw=raw, headers=headers).status_code == status


def test_an_escaped_backslash_is_no_nul(cloud: Cloud) -> None:
    raw = json.dumps(flavor(name="a\\u0000")).encode()
    assert b"\\\\u0000" in raw
    assert post(cloud, raw).status_code == 200


def test_a_body_at_and_above_the_limit(cloud: Cloud) -> None:
    text = json.dumps(flavor())
    assert post(cloud, text.ljust(LIMIT).encode()).status_code == 200
    result = post(cloud, text.ljust(LIMIT + 1).encode())
    assert result.status_code == 413
    assert result.json["overLimit"]["message"] == (
        f"Request is too large. The limit is {LIMIT} bytes."
    )


def test_the_limit_is_an_option(cloud: Cloud) -> None:
    cloud.conf.set_override("max_request_body_size", 2000, group="api")
    text = json.dumps(flavor())
    assert post(cloud, text.ljust(2000).encode()).status_code == 200
    assert post(cloud, text.ljust(2001).encode()).status_code == 413


class Endless:
    """A chunked body that has no end; counts what is read of it."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "read without a bound"
        self.taken += size
        return b" " * size

    readline = readlines = __iter__ = read


@pytest.mark.parametrize(("tail", "status"), [(b"", 200), (b" " * LIMIT, 413)])
def test_chunked_bodies(cloud: Cloud, tail: bytes, status: int) -> None:
    import io

    body = io.BytesIO(json.dumps(flavor()).encode() + tail)
    extras = {"wsgi.input": body, "wsgi.input_terminated": True}
    result = cloud.call(
        "POST",
        FLAVORS,
        headers={"Transfer-Encoding": "chunked", "Content-Type": "application/json"},
        extras=extras,
    )
    assert result.status_code == status, result.text


def test_an_endless_body_is_read_to_the_limit(cloud: Cloud) -> None:
    endless = Endless()
    result = cloud.call(
        "POST",
        FLAVORS,
        headers={"Transfer-Encoding": "chunked", "Content-Type": "application/json"},
        extras={"wsgi.input": endless},
    )
    assert result.status_code == 413
    assert endless.taken == LIMIT + 1


QUERIES = {
    "501 values": "&".join(["sort_key=name"] * 501),
    "600 names": "&".join(f"n{number}=1" for number in range(600)),
    "NUL": "name=%00",
    "no UTF-8": "name=%ff%fe",
    "a broken escape": "name=%zz",
    "a lone surrogate": "name=%ed%a0%80",
    "an open bracket": "name=[",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize(
    "path", ["/servers", "/servers/detail", "/flavors/detail", "/os-hypervisors", "/os-services"]
)
def test_queries(cloud: Cloud, path: str, query: str) -> None:
    cloud.boot()
    assert cloud.call("GET", path, query_string=query).status_code in (200, 400)


def test_too_many_values_are_told(cloud: Cloud) -> None:
    result = cloud.call("GET", "/servers", query_string=QUERIES["501 values"])
    assert (result.status_code, "500 values" in result.text) == (400, True)
    result = cloud.call("GET", "/servers", query_string="&".join(["sort_key=uuid"] * 500))
    assert result.status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/servers/%ff", "/servers/%00", "/servers/" + "a" * 5000, "/flavors/%ed%a0%80", "/%2e%2e/"],
)
def test_paths(cloud: Cloud, path: str) -> None:
    assert cloud.call("GET", path).status_code == 404


class TestHost:
    @pytest.mark.parametrize(
        "host",
        [
            'evil"><script>',
            "a b",
            "name:port",
            "name:80:80",
            "http://evil",
            "evil/path",
            "user@evil",
            "evil?",
            "[::1",
            "a" * 300,
            "\xe9vil",
            "",
        ],
    )
    @pytest.mark.parametrize("path", ["/", "/v2.1/servers"])
    def test_what_is_no_host_is_refused(self, cloud: Cloud, host: str, path: str) -> None:
        result = cloud.client.simulate_get(
            path, headers={"X-Auth-Token": "admin"}, extras={"HTTP_HOST": host}
        )
        assert result.status_code == 400, result.text
        assert not host or host not in result.text

    @pytest.mark.parametrize("host", ["cloud.example", "10.0.0.1:8774", "[::1]:8774", "c-1_x:1"])
    def test_a_good_one_stands_in_links(self, cloud: Cloud, host: str) -> None:
        result = cloud.client.simulate_get("/", extras={"HTTP_HOST": host})
        assert f"http://{host}/v2.1/" in result.text

    def test_no_other_header_gets_into_links(self, cloud: Cloud) -> None:
        server = cloud.boot()
        forged = {"X-Forwarded-Host": "evil", "Forwarded": "host=evil", "X-Forwarded-Proto": "evil"}
        assert "evil" not in cloud.call("GET", f"/servers/{server}", headers=forged).text

    def test_the_prefix_wins(self, cloud: Cloud) -> None:
        cloud.conf.set_override("compute_link_prefix", "https://cloud.example/", group="api")
        server = cloud.boot()
        result = cloud.call("GET", f"/servers/{server}", extras={"HTTP_HOST": "evil"})
        assert "evil" not in result.text
        assert f"https://cloud.example/v2.1/servers/{server}" in result.text
