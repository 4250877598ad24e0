# SPDX-License-Identifier: Apache-2.0
"""What holds for every route: headers, documents, paths, errors, the access log."""

import logging
import re
from typing import Any

import pytest

from novalite import log
from novalite.api import app, microversion

UUID = "12345678-1234-1234-1234-123456789abc"


def test_root_lists_both_versions_without_a_token(cloud: Any) -> None:
    result = cloud.client.simulate_get("/")
    assert result.status_code == 200
    v20, v21 = result.json["versions"]
    assert (v20["id"], v20["version"], v20["min_version"]) == ("v2.0", "", "")
    assert (v21["id"], v21["version"], v21["min_version"]) == ("v2.1", "2.79", "2.1")
    assert set(v21) == {"id", "status", "version", "min_version", "updated", "links"}
    assert v21["links"] == [{"rel": "self", "href": "http://falconframework.org/v2.1/"}]


@pytest.mark.parametrize(
    ("path", "key"), [("/v2.1", "v2.1"), ("/v2.1/", "v2.1"), ("/v2/", "v2.0"), ("/v2", "v2.0")]
)
def test_version_document_without_a_token(cloud: Any, path: str, key: str) -> None:
    result = cloud.client.simulate_get(path)
    version = result.json["version"]
    assert version["id"] == key
    assert "media-types" in version
    assert [link["rel"] for link in version["links"]] == ["self", "describedby"]


@pytest.mark.parametrize("path", ["/", "/v2.1", "/v2/"])
def test_load_balancers_may_ask_for_the_head(cloud: Any, path: str) -> None:
    result = cloud.client.simulate_head(path)
    assert (result.status_code, result.text) == (200, "")


def test_version_document_takes_any_version_header(cloud: Any) -> None:
    result = cloud.client.simulate_get("/v2.1", headers={"X-OpenStack-Nova-API-Version": "2.999"})
    assert result.status_code == 200


def test_headers_of_an_answer(cloud: Any) -> None:
    headers = cloud.call("GET", "/servers", version="2.26").headers
    assert headers["X-OpenStack-Nova-API-Version"] == "2.26"
    assert headers["OpenStack-API-Version"] == "compute 2.26"
    assert headers["Vary"] == "OpenStack-API-Version, X-OpenStack-Nova-API-Version"
    assert re.fullmatch(r"req-[0-9a-f-]{36}", headers["x-openstack-request-id"])
    assert headers["x-compute-request-id"] == headers["x-openstack-request-id"]
    assert headers["content-type"] == "application/json"


def test_legacy_header_alone_is_echoed(cloud: Any) -> None:
    result = cloud.call("GET", "/servers", headers={"X-OpenStack-Nova-API-Version": "2.7"})
    assert result.headers["X-OpenStack-Nova-API-Version"] == "2.7"


def test_latest_is_the_announced_maximum(cloud: Any) -> None:
    result = cloud.call("GET", "/servers", version="latest")
    assert result.headers["X-OpenStack-Nova-API-Version"] == microversion.text(microversion.MAX)


def test_errors_have_the_headers_too(cloud: Any) -> None:
    result = cloud.call("GET", f"/servers/{UUID}", version="2.26")
    assert result.status_code == 404
    assert result.headers["X-OpenStack-Nova-API-Version"] == "2.26"
    assert result.headers["x-openstack-request-id"].startswith("req-")


def test_no_token_is_401_in_json(cloud: Any) -> None:
    result = cloud.client.simulate_get("/v2.1/servers")
    assert result.status_code == 401
    assert result.json["error"]["code"] == 401
    assert "WWW-Authenticate" in result.headers


def test_too_high_and_malformed_version(cloud: Any) -> None:
    high = cloud.call("GET", "/servers", version="2.999")
    assert (high.status_code, high.json["computeFault"]["code"]) == (406, 406)
    assert cloud.call("GET", "/servers", version="2").status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nope"),
        ("GET", "/servers/"),
        ("DELETE", "/servers/"),
        ("PUT", "/servers"),
        ("PATCH", "/servers"),
        ("OPTIONS", "/servers"),
        ("POST", f"/servers/{UUID}"),
        ("GET", f"/servers/{UUID}/nope"),
        ("GET", "//servers"),
        ("GET", "/servers/%00"),
        ("GET", "/os-nothing"),
        ("GET", "/not-a-project/servers"),
        ("POST", "/flavors/detail"),
    ],
)
def test_what_is_not_there_is_404(cloud: Any, method: str, path: str) -> None:
    result = cloud.call(method, path)
    assert result.status_code == 404
    assert result.json["itemNotFound"]["code"] == 404


def test_project_in_the_url_stands_in_links(cloud: Any) -> None:
    key = cloud.boot(user="u:11111111222233334444555555555555")
    path = f"/11111111222233334444555555555555/servers/{key}"
    server = cloud.get(path, user="u:11111111222233334444555555555555")["server"]
    base = "http://falconframework.org"
    assert server["links"] == [
        {"rel": "self", "href": f"{base}/v2.1{path}"},
        {"rel": "bookmark", "href": f"{base}{path}"},
    ]


def test_project_by_word_is_taken_from_noauth(cloud: Any) -> None:
    assert cloud.get("/admin/servers") == {"servers": []}


def test_another_project_in_the_url_is_refused(cloud: Any) -> None:
    result = cloud.call("GET", f"/{UUID}/servers")
    assert result.status_code == 400
    assert result.json["badRequest"]["message"].startswith("Malformed request url")


def test_link_prefix_replaces_the_host(cloud: Any) -> None:
    cloud.conf.set_override("compute_link_prefix", "https://cloud.example/compute/", group="api")
    links = cloud.get("/flavors")["flavors"][0]["links"]
    assert links[0]["href"] == "https://cloud.example/compute/v2.1/flavors/1"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b"\xff", {}, 400),
        (b'{"server": NaN}', {}, 400),
        (b'{"server": {"name": "\\ud800"}}', {}, 400),
        (b"[" * 50000, {}, 400),
        (b'{"a":' * 40 + b"1" + b"}" * 40, {}, 400),
        (b"9" * 5000, {}, 400),
        (b"{}", {"Content-Type": "text/xml"}, 415),
        (b" " * 200000, {}, 413),
    ],
)
def test_bodies_that_are_none(
    cloud: Any, body: bytes, headers: dict[str, str], status: int
) -> None:
    sent = {"Content-Type": "application/json", **headers}
    result = cloud.call("POST", "/servers", headers=sent, raw=body)
    assert result.status_code == status, result.text


def test_a_number_with_a_thousand_digits_is_refused_not_a_crash(cloud: Any) -> None:
    result = cloud.create(min_count=10**300)
    assert result.status_code == 400


def test_access_log_has_novas_shape(cloud: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=log.ACCESS):
        cloud.call("GET", "/servers/detail?name=a%0Ab&x=1")
    record = next(record for record in caplog.records if record.name == log.ACCESS)
    assert re.fullmatch(
        r'127\.0\.0\.1 "GET /v2\.1/servers/detail\?name=a%0Ab&x=1 HTTP/1\.1" '
        r"status: 200 len: 14 time: \d+\.\d{7}",
        record.getMessage(),
    )


def test_access_log_cannot_be_broken_into_lines(
    cloud: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=log.ACCESS):
        cloud.call("GET", "/servers/a%0Ab")
    assert all("\n" not in record.getMessage() for record in caplog.records)


def test_each_route_has_one_noun_per_file() -> None:
    for url, resource in app.ROUTES.items():
        assert resource.__module__.startswith("novalite.api.resources."), url
    assert app.nouns() == {
        "servers",
        "flavors",
        "os-services",
        "os-hypervisors",
        "novalite",
        "os-aggregates",
        "os-availability-zone",
        "os-keypairs",
        "os-server-groups",
        "os-simple-tenant-usage",
        "os-quota-sets",
        "os-quota-class-sets",
        "limits",
    }


def test_database_that_is_away_is_503(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from novalite import exception

    def away(_work: Any) -> Any:
        raise exception.DatabaseUnavailable()

    monkeypatch.setattr(cloud.database, "read", away)
    result = cloud.call("GET", f"/servers/{UUID}")
    assert result.status_code == 503
    assert "Retry-After" in result.headers
