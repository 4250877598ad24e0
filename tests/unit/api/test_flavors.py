# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from novalite.db import flavors
from tests.unit.api.cloud import Cloud

KEYS = {
    *("id", "name", "ram", "disk", "vcpus", "swap", "rxtx_factor", "links"),
    *("OS-FLV-EXT-DATA:ephemeral", "OS-FLV-DISABLED:disabled", "os-flavor-access:is_public"),
}


def make(cloud: Cloud, user: str = "admin:admin", **flavor: Any) -> Any:
    asked = {"name": "f", "ram": 64, "vcpus": 1, "disk": 1, **flavor}
    return cloud.call("POST", "/flavors", {"flavor": asked}, user=user)


def ids(cloud: Cloud, query: str = "", **kwargs: Any) -> list[str]:
    return [flavor["id"] for flavor in cloud.get(f"/flavors{query}", **kwargs)["flavors"]]


def test_create_and_show(cloud: Cloud) -> None:
    result = make(cloud, id="7", swap=512, rxtx_factor="2.5", **{"OS-FLV-EXT-DATA:ephemeral": 10})
    assert result.status_code == 200
    flavor = result.json["flavor"]
    assert set(flavor) == KEYS
    assert (flavor["swap"], flavor["rxtx_factor"]) == (512, 2.5)
    assert cloud.get("/flavors/7", user="u:p") == {"flavor": flavor}
    assert cloud.get("/flavors/1")["flavor"]["swap"] == ""


@pytest.mark.parametrize("key", [None, "auto"])
def test_id_of_its_own(cloud: Cloud, key: Any) -> None:
    assert len(make(cloud, id=key).json["flavor"]["id"]) == 36


def test_numbers_as_text(cloud: Cloud) -> None:
    flavor = make(cloud, ram="64", vcpus="2", disk="0").json["flavor"]
    assert (flavor["ram"], flavor["vcpus"], flavor["disk"]) == (64, 2, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"ram": 0},
        {"ram": "x"},
        {"ram": 2**31},
        {"vcpus": 0},
        {"vcpus": -1},
        {"disk": -1},
        {"swap": -1},
        {"name": ""},
        {"name": " f"},
        {"name": "f\x00"},
        {"id": "a/b"},
        {"id": " a"},
        {"id": "x" * 256},
        {"rxtx_factor": 0},
        {"rxtx_factor": "0"},
        {"rxtx_factor": 1e300},
        {"rxtx_factor": "1e9"},
        {"os-flavor-access:is_public": "maybe"},
        {"description": "d"},
    ],
)
def test_refused(cloud: Cloud, change: dict[str, Any]) -> None:
    result = make(cloud, **change)
    assert result.status_code == 400, result.text
    assert ids(cloud) == ["1"]


def test_taken(cloud: Cloud) -> None:
    assert make(cloud, id="1").json["conflictingRequest"]["message"] == (
        "Flavor with ID 1 already exists."
    )
    assert make(cloud, name="m1.tiny").json["conflictingRequest"]["message"] == (
        "Flavor with name m1.tiny already exists."
    )


def test_delete(cloud: Cloud) -> None:
    key = cloud.boot()
    assert cloud.call("DELETE", "/flavors/1").status_code == 202
    assert cloud.call("DELETE", "/flavors/1").status_code == 404
    assert cloud.get(f"/servers/{key}")["server"]["flavor"]["id"] == "1"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/flavors", {"flavor": {"name": "f", "ram": 1, "vcpus": 1, "disk": 1}}),
        ("DELETE", "/flavors/1", None),
        ("POST", "/flavors/1/os-extra_specs", {"extra_specs": {"a": "b"}}),
        ("PUT", "/flavors/1/os-extra_specs/a", {"a": "b"}),
        ("DELETE", "/flavors/1/os-extra_specs/hw:foo", None),
        ("POST", "/flavors/1/action", {"addTenantAccess": {"tenant": "p"}}),
        ("GET", "/flavors/1/os-flavor-access", None),
    ],
)
def test_users_change_nothing(cloud: Cloud, method: str, path: str, body: Any) -> None:
    assert cloud.call(method, path, body, user="u:p").status_code == 403


class TestDescription:
    """2.55."""

    def test_create_show_list(self, cloud: Cloud) -> None:
        asked = {"name": "f", "ram": 64, "vcpus": 1, "disk": 1, "id": "7", "description": "d\ne"}
        result = cloud.call("POST", "/flavors", {"flavor": asked}, version="2.55")
        assert result.json["flavor"]["description"] == "d\ne"
        assert cloud.get("/flavors/7", version="2.55") == result.json
        for path in ("/flavors", "/flavors/detail"):
            listed = cloud.get(path, version="2.55")["flavors"]
            assert [flavor["description"] for flavor in listed] == [None, "d\ne"]

    def test_change(self, cloud: Cloud) -> None:
        for description in ("new", "", None):
            body = {"flavor": {"description": description}}
            result = cloud.call("PUT", "/flavors/1", body, version="2.61")
            assert result.status_code == 200
            assert result.json["flavor"]["description"] == description
            assert result.json["flavor"]["extra_specs"] == {"hw:foo": "bar"}
            assert cloud.get("/flavors/1", version="2.61") == result.json

    @pytest.mark.parametrize(
        "body",
        [
            {"flavor": {}},
            {"flavor": {"description": 1}},
            {"flavor": {"description": "x" * 65536}},
            {"flavor": {"description": "a\u0007"}},
            {"flavor": {"description": "d", "name": "n"}},
            {},
        ],
    )
    def test_wrong(self, cloud: Cloud, body: Any) -> None:
        assert cloud.call("PUT", "/flavors/1", body, version="2.55").status_code == 400

    def test_long(self, cloud: Cloud) -> None:
        body = {"flavor": {"description": "x" * 65535}}
        assert cloud.call("PUT", "/flavors/1", body, version="2.55").status_code == 200

    def test_who_and_since_when(self, cloud: Cloud) -> None:
        body = {"flavor": {"description": "d"}}
        assert cloud.call("PUT", "/flavors/1", body, version="2.54").status_code == 404
        assert cloud.call("PUT", "/flavors/no", body, version="2.55").status_code == 404
        refused = cloud.call("PUT", "/flavors/1", body, version="2.55", user="u:p")
        assert refused.status_code == 403


def test_no_swap_is_a_number_from_275(cloud: Cloud) -> None:
    make(cloud, id="7", name="swapping", swap=5)
    for version, none in (("2.74", ""), ("2.75", 0)):
        assert cloud.get("/flavors/1", version=version)["flavor"]["swap"] == none
        assert cloud.get("/flavors/7", version=version)["flavor"]["swap"] == 5
        listed = cloud.get("/flavors/detail", version=version)["flavors"]
        assert [flavor["swap"] for flavor in listed] == [none, 5]


def test_unknown_parameters_from_275(cloud: Cloud) -> None:
    for path in ("/flavors?x=1", "/flavors/detail?x=1"):
        assert cloud.call("GET", path, version="2.74").status_code == 200
        refused = cloud.call("GET", path, version="2.75")
        assert refused.status_code == 400
        assert "'x' was unexpected" in refused.json["badRequest"]["message"]
    assert ids(cloud, "?limit=1&sort_key=name&sort_dir=asc&minRam=1&minDisk=1", version="2.79")


class TestList:
    @pytest.fixture(autouse=True)
    def some(self, cloud: Cloud) -> None:
        make(cloud, id="2", name="big", ram=4096, disk=40)
        make(cloud, id="3", name="own", **{"os-flavor-access:is_public": False})
        make(cloud, id="4", name="all", ram=1024, disk=0)

    def test_order_and_pages(self, cloud: Cloud) -> None:
        assert ids(cloud) == ["1", "2", "4"]
        body = cloud.get("/flavors/detail?limit=2")
        assert [flavor["id"] for flavor in body["flavors"]] == ["1", "2"]
        assert set(body["flavors"][0]) == KEYS
        assert body["flavors_links"] == [
            {
                "rel": "next",
                "href": "http://falconframework.org/v2.1/flavors/detail?limit=2&marker=2",
            }
        ]
        assert cloud.get("/flavors?marker=2&limit=1")["flavors"][0]["id"] == "4"
        assert "flavors_links" not in cloud.get("/flavors?marker=2&limit=1")
        assert cloud.get("/flavors?limit=0") == {"flavors": []}
        assert cloud.call("GET", "/flavors?marker=nope").status_code == 400

    def test_sorted(self, cloud: Cloud) -> None:
        assert ids(cloud, "?sort_key=memory_mb&sort_dir=desc") == ["2", "4", "1"]
        assert ids(cloud, "?sort_key=name") == ["4", "2", "1"]
        assert ids(cloud, "?sort_key=name&marker=4") == ["2", "1"]

    @pytest.mark.parametrize("way", ["asc", "desc"])
    @pytest.mark.parametrize("key", sorted(flavors.SORT))
    def test_pages_in_every_order(self, cloud: Cloud, key: str, way: str) -> None:
        query = f"?is_public=None&sort_key={key}&sort_dir={way}"
        whole = ids(cloud, query)
        found: list[str] = []
        while page := ids(cloud, f"{query}&limit=1" + (f"&marker={found[-1]}" if found else "")):
            found += page
        assert found == whole
        assert sorted(whole) == ["1", "2", "3", "4"]

    def test_sizes(self, cloud: Cloud) -> None:
        assert ids(cloud, "?minRam=1000") == ["2", "4"]
        assert ids(cloud, "?minDisk=2") == ["2"]
        for query in ("?minRam=x", "?minDisk=-1", "?minRam=" + "9" * 40):
            assert cloud.call("GET", f"/flavors{query}").status_code == 400

    def test_is_public_is_for_administrators(self, cloud: Cloud) -> None:
        assert ids(cloud, "?is_public=None") == ["1", "2", "3", "4"]
        assert ids(cloud, "?is_public=false") == ["3"]
        assert ids(cloud, "?is_public=True") == ["1", "2", "4"]
        assert ids(cloud, "?is_public=None", user="u:p") == ["1", "2", "4"]
        result = cloud.call("GET", "/flavors?is_public=maybe")
        assert result.json["badRequest"]["message"] == "Invalid is_public filter [maybe]"

    def test_access(self, cloud: Cloud) -> None:
        path = "/flavors/3/action"
        given = {"flavor_access": [{"flavor_id": "3", "tenant_id": "p"}]}
        assert cloud.call("GET", "/flavors/3", user="u:p").status_code == 404
        result = cloud.call("POST", path, {"addTenantAccess": {"tenant": "p"}})
        assert (result.status_code, result.json) == (200, given)
        assert cloud.get("/flavors/3/os-flavor-access") == given
        assert "3" in ids(cloud, user="u:p")
        assert cloud.get("/flavors/3", user="u:p")["flavor"]["name"] == "own"
        again = cloud.call("POST", path, {"addTenantAccess": {"tenant": "p"}})
        assert again.status_code == 409
        result = cloud.call("POST", path, {"removeTenantAccess": {"tenant": "p"}})
        assert result.json == {"flavor_access": []}
        gone = cloud.call("POST", path, {"removeTenantAccess": {"tenant": "p"}})
        assert gone.status_code == 404

    @pytest.mark.parametrize(
        "body", [{}, {"nonsense": {}}, {"addTenantAccess": {}}, {"addTenantAccess": {"tenant": ""}}]
    )
    def test_wrong_action(self, cloud: Cloud, body: Any) -> None:
        assert cloud.call("POST", "/flavors/3/action", body).status_code == 400

    def test_public_flavor_has_no_access_list(self, cloud: Cloud) -> None:
        assert cloud.call("GET", "/flavors/1/os-flavor-access").status_code == 404
        body = {"addTenantAccess": {"tenant": "p"}}
        assert cloud.call("POST", "/flavors/1/action", body).status_code == 409


class TestExtraSpecs:
    PATH = "/flavors/1/os-extra_specs"

    def test_all_verbs(self, cloud: Cloud) -> None:
        specs = {"a": "1", "quota:x": "y"}
        assert cloud.call("POST", self.PATH, {"extra_specs": specs}).json == {"extra_specs": specs}
        assert cloud.get(self.PATH, user="u:p") == {"extra_specs": {"hw:foo": "bar", **specs}}
        assert cloud.call("PUT", f"{self.PATH}/a", {"a": "2"}).json == {"a": "2"}
        assert cloud.get(f"{self.PATH}/a", user="u:p") == {"a": "2"}
        result = cloud.call("DELETE", f"{self.PATH}/a")
        assert (result.status_code, result.text) == (200, "")
        assert cloud.call("DELETE", f"{self.PATH}/a").status_code == 404
        assert cloud.call("GET", f"{self.PATH}/a").status_code == 404

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", PATH, {"extra_specs": {"a/b": "c"}}),
            ("POST", PATH, {"extra_specs": {"a": None}}),
            ("POST", PATH, {"extra_specs": {"a": "x" * 256}}),
            ("POST", PATH, {}),
            ("PUT", f"{PATH}/a", {"b": "c"}),
            ("PUT", f"{PATH}/a", {"a": "b", "c": "d"}),
        ],
    )
    def test_refused(self, cloud: Cloud, method: str, path: str, body: Any) -> None:
        assert cloud.call(method, path, body).status_code == 400

    def test_a_number_may_be_as_long_as_a_text(self, cloud: Cloud) -> None:
        most = 10**254
        answer = cloud.call("PUT", f"{self.PATH}/a", {"a": most})
        assert (answer.status_code, answer.json) == (200, {"a": str(most)})
        for number in (10**255, -most):
            for method, path, body in (
                ("PUT", f"{self.PATH}/a", {"a": number}),
                ("POST", self.PATH, {"extra_specs": {"b": 1, "a": number}}),
            ):
                answer = cloud.call(method, path, body)
                assert answer.status_code == 400
                assert "field/attribute a. Value: " in answer.json["badRequest"]["message"]
        assert cloud.get(self.PATH) == {"extra_specs": {"hw:foo": "bar", "a": str(most)}}

    def test_unknown_flavor(self, cloud: Cloud) -> None:
        path = "/flavors/nope/os-extra_specs"
        assert cloud.call("GET", path).status_code == 404
        assert cloud.call("POST", path, {"extra_specs": {"a": "b"}}).status_code == 404
