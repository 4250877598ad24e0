# SPDX-License-Identifier: Apache-2.0
"""Sends what the OpenAPI document allows, what it forbids, and what is merely odd.

schemathesis makes cases from the document: such as fit it and such as do not. A third kind is a
case that fits with one part replaced by something from the lists here, or with odd headers. Ids
in URLs are those of things that exist, more often than not. Every answer is compared with the
document.
"""

import copy
import http.client
import json
import re
import urllib.parse
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import jsonschema
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from schemathesis import GenerationMode

from novalite.api import microversion
from novalite.api.openapi import document
from novalite.devcloud.errors import ClientError
from tests.functional import api as api_module
from tests.functional.cloud import Cloud

JSON = "application/json"
_SCHEMAS = re.compile(r"#/components/schemas/([\w.-]+)")
_NAMES = re.compile(r"\{(\w+)\}")
TEXTS = [
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "\ud800",
        "\udfff\ud800",
        "\u202eabc",
        "e\u0301",
        "\ufeff",
        "\U0001f600",
    ),
    *(
        "\U000e0001",
        "\uffff",
        "A" * 255,
        "A" * 256,
        "\u00e9" * 255,
        "\U0001f600" * 255,
        "x" * 70000,
    ),
    *(
        "5\n",
        "name\n",
        "\n",
        "a\tb",
        "a\x85b",
        "\x7f",
        "0\n",
        "-1",
        "-1\n",
        "+1",
        "1_0",
        " 1",
        "1 ",
    ),
    *(
        "\u0661",
        "\uff11",
        "9" * 10,
        "9999999999\n",
        "9" * 5000,
        "1e3",
        "0x10",
        "NaN",
        "null",
        "true",
    ),
    *(
        "%00",
        "%",
        "%ff",
        "..",
        "../..",
        "a/b",
        "'; --",
        "${x}",
        "%s",
        "%(x)s",
        "{x}",
        "[",
        "(",
        "\\",
    ),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "2026-02-30"),
    *(
        "0001-01-01T00:00:00+23:59",
        "latest",
        "detail",
        "default",
        "auto",
        "none",
        "\u0130",
        "\u00df",
    ),
]
NUMBERS = [
    *(
        0,
        -0.0,
        -1,
        1,
        0.5,
        1.0,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        2**63 - 1,
        2**63,
        2**64,
        -(2**63) - 1,
    ),
    *(10**20, 10**4000, -(10**4000), 1e308, 5e-324, 1e22, 3.5e38),
]
DEEP: Any = 1
for _level in range(28):
    DEEP = [DEEP] if _level % 2 else {"a": DEEP}
OTHERS: list[Any] = [None, True, False, [], {}, [None], {"": ""}, DEEP, [1] * 2000, ["a", "a"]]
VALUES = [*TEXTS, *NUMBERS, *OTHERS]
# Whole bodies, as they are.
BODIES = [
    *(
        b"",
        b"{",
        b"null",
        b"[]",
        b"0",
        b'""',
        b"{}",
        b"\xff",
        b"\0",
        b'{"a": NaN}',
        b'{"a": 1e999}',
    ),
    *(b"[" * 40000, b'{"a":' * 40 + b"1" + b"}" * 40, b'{"a": 1, "a": 1}', b"\xef\xbb\xbf{}"),
    *(b'{"server": null}', b'{"flavor": []}', b'{"a": ' + b"9" * 6000 + b"}", b" " * 200000),
]
TYPES = [
    *("", "text/plain", "application/xml", "application/x-www-form-urlencoded", "JSON", "*/*", ";"),
    *("application/json; charset=latin-1", "application/json;;", "application/json, text/plain"),
    *("multipart/form-data", "application/vnd.openstack.compute+json", "\u00e9"),
]
HEADERS = [
    *(
        ("OpenStack-API-Version", word)
        for word in ("compute", "compute 2.x", "compute 2.99", ",", "")
    ),
    *(("OpenStack-API-Version", word) for word in ("compute 2." + "9" * 400, "compute latest")),
    *(("X-OpenStack-Nova-API-Version", word) for word in ("2.1", "latest", "-1", "\u00e9")),
    *(("X-Auth-Token", word) for word in ("", ":", "a", "\u00e9:\u00e9", "admin:admin")),
    *(("X-OpenStack-Request-Id", word) for word in ("req-" + "0" * 36, "x" * 4000, "\u00e9")),
    *(
        ("Accept", "image/png"),
        ("Accept", ";;"),
        ("Accept-Encoding", "gzip"),
        ("Range", "bytes=9-1"),
    ),
    *(("If-Modified-Since", "never"), ("If-None-Match", "*"), ("Expect", "nothing")),
    *(("Content-Encoding", "gzip"), ("X-Forwarded-For", "\u00e9"), ("Forwarded", "for=;;=")),
    *(("Cookie", "a=\u00e9;;="), ("X-HTTP-Method-Override", "DELETE"), ("X-Roles", "admin")),
]


@dataclass(slots=True)
class Answer:
    """One answer; *data* is its body."""

    status: int
    headers: http.client.HTTPMessage
    data: bytes


@dataclass(slots=True)
class Tally:
    """What was sent and what came back."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        wrong = sum(count for status, count in self.statuses.items() if status >= 500)
        return f"{self.requests} requests, {wrong} answers of 5xx ({counts})"


class Things:
    """One of everything for a caller; what a case has destroyed is made again."""

    def __init__(self, cloud: Cloud, user: str, version: int):
        self._admin = cloud.api
        self.api = cloud.client(user, user)
        self._version = version
        self.values: dict[str, str] = {"network": "net", "key": "key", "tag": "tag"}
        self.values.update(flavor_id=api_module.NANO, keypair_name="mine", quota_class="default")
        # The cloud of these tests has no block storage, so nothing is attached.
        self.values.update(tenant_id=user, volume_id=str(uuid.UUID(int=1)))

    def make(self) -> None:
        """Make or find everything."""
        admin = self._admin
        limits = {"instances": 100, "cores": 1000, "ram": 10**6, "metadata_items": 128}
        limits.update(key_pairs=1000, server_groups=1000, server_group_members=1000)
        admin.request("PUT", "/os-quota-class-sets/default", {"quota_class_set": limits})
        admin.request("DELETE", f"/os-quota-sets/{self.values['tenant_id']}")
        admin.request("POST", "/flavors", {"flavor": api_module.FLAVOR})
        specs = {"extra_specs": {"key": "value"}}
        admin.request("POST", f"/flavors/{api_module.NANO}/os-extra_specs", specs)
        self.api.request("POST", "/os-keypairs", {"keypair": {"name": "mine"}})
        for service in admin.get("/os-services?binary=nova-compute")["services"]:
            path = f"/os-services/{service['id']}"
            admin.request("PUT", path, {"status": "enabled", "forced_down": False})
            self.values["service_id"] = service["id"]
        admin.microversion(microversion.text(self._version))
        for service in admin.get("/os-services?binary=nova-compute")["services"]:
            self.values["service_id"] = str(service["id"])
        for node in admin.get("/os-hypervisors")["hypervisors"]:
            self.values["hypervisor_id"] = str(node["id"])
        admin.microversion("2.53")
        self._aggregate()
        self._group()
        self._server()

    def _aggregate(self) -> None:
        found = self._admin.get("/os-aggregates")["aggregates"]
        if not found:
            body = {"aggregate": {"name": "a"}}
            found = [self._admin.post("/os-aggregates", body)["aggregate"]]
        self.values["aggregate_id"] = str(found[0]["id"])

    def _group(self) -> None:
        found = self.api.get("/os-server-groups")["server_groups"]
        if not found:
            body = {"server_group": {"name": "g", "policies": ["affinity"]}}
            found = [self.api.post("/os-server-groups", body)["server_group"]]
        self.values["server_group_id"] = found[0]["id"]

    def _server(self) -> None:
        """Keep one server, and not so many others that no more can be made."""
        found = self.api.servers()
        while len(found) > 3:
            self.api.delete(found.pop()["id"])
        chosen = next((one["id"] for one in found if one["metadata"].get("key")), None)
        if chosen is None:
            chosen = self.api.boot(metadata={"key": "value"}, tags=["tag"])
        self.values["server_id"] = chosen
        self.values["request_id"] = self.api.actions(chosen)[-1]["request_id"]


class Fuzzer:
    """Sends cases of one document, each as every one of *users* in turn."""

    def __init__(self, cloud: Cloud, users: Sequence[str], version: int):
        self._document = document.make(version)
        self._schema = schemathesis.openapi.from_dict(self._document)
        self._version = microversion.text(version)
        self._things = {user: Things(cloud, user, version) for user in users}
        self._url = cloud.endpoints.compute_url.partition("/v2.1")[0]
        self._link = http.client.HTTPConnection(urllib.parse.urlsplit(self._url).netloc, timeout=60)
        self.tallies = {user: Tally() for user in users}

    def run(
        self, seed: int, examples: int, only: Callable[[Any], bool] = lambda _one: True
    ) -> None:
        """Send *examples* cases of each kind for every operation."""
        whole = False
        for operation in self.operations():
            if not only(operation):
                continue
            if not whole:
                self._make(operation)
            # What reads leaves everything as it was.
            whole = str(operation.method).upper() in ("GET", "HEAD")
            for strategy in self._strategies(operation):
                self._play(operation, strategy, seed, examples)
        self._link.close()

    def _make(self, operation: Any) -> None:
        for user, things in self._things.items():
            try:
                things.make()
            except (ClientError, AssertionError) as error:
                self.tallies[user].problems.append(f"before {operation.label}: {error}")

    def operations(self) -> Iterator[Any]:
        """Yield the operations of the document."""
        for found in self._schema.get_all_operations():
            yield found.ok()

    def _strategies(self, operation: Any) -> Iterator[st.SearchStrategy[Any]]:
        fitting = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        yield st.tuples(fitting, st.just(None))
        if operation.label.partition(" ")[2] in ("/", "/healthz") or not list(
            operation.iter_parameters()
        ):
            return
        misfit = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        yield st.tuples(misfit, st.just(None))
        yield st.tuples(fitting, _odd(operation))

    def _play(
        self, operation: Any, strategy: st.SearchStrategy[Any], seed: int, examples: int
    ) -> None:
        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=examples,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(strategy, st.integers(0, 3), st.booleans())
        def play(made: Any, real: int, bootable: bool) -> None:
            case, odd = made
            for user in self._things:
                one = operation.Case(
                    path_parameters=case.path_parameters,
                    query=case.query,
                    headers=case.headers,
                    body=case.body,
                )
                self._case(user, operation, one, odd, real=real > 0, bootable=bootable)

        play()

    def _case(
        self, user: str, operation: Any, case: Any, odd: Any, *, real: bool, bootable: bool
    ) -> None:
        if real:
            values = self._things[user].values
            case.path_parameters = {name: values[name] for name in case.path_parameters}
        headers = self._headers(user, dict(case.headers or {}))
        body = case.body
        if case.method == "POST" and case.path.endswith("/servers") and bootable:
            body = _bootable(body)
        if odd is not None:
            body = odd.into(case, body)
        self._send(user, operation, case, body, headers, odd)

    def sweep(self, user: str) -> None:
        """Send every odd body, content type and header once to whatever can take it."""
        things = self._things[user]
        things.make()
        for operation in self.operations():
            path, names = operation.path, operation.path.count("{")
            values = {name: things.values[name] for name in _NAMES.findall(path)}
            case = operation.Case(path_parameters=values)
            headers = self._headers(user, {})
            words = [("header", value) for value in HEADERS] if names == 0 else []
            words += [("twice", None)] if names else []
            if operation.body:
                words += [("raw", value) for value in BODIES]
                words += [("type", value) for value in TYPES]
            for at, (kind, value) in enumerate(words):
                self._send(user, operation, case, {}, dict(headers), Odd(kind, value, at))
        self._link.close()

    def _headers(self, user: str, headers: dict[str, str]) -> dict[str, str]:
        found = {microversion.HEADER: f"compute {self._version}", **headers}
        found["X-Auth-Token"] = f"{user}:{user}"
        return {name: value for name, value in found.items() if _sendable(name, value)}

    def _send(
        self,
        user: str,
        operation: Any,
        case: Any,
        body: Any,
        headers: dict[str, str],
        odd: Any,
    ) -> None:
        tally = self.tallies[user]
        has_body = bool(operation.body) and type(body).__name__ != "NotSet"
        words = case.as_transport_kwargs(base_url=self._url)
        url = requests.Request("GET", words["url"], params=words.get("params")).prepare().path_url
        data: bytes | None = None
        if has_body:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers.setdefault("Content-Type", JSON)
        pairs = list(headers.items())
        if odd is not None:
            data, pairs = odd.around(data, pairs)
        method = str(case.method).upper()
        tally.requests += 1
        try:
            answer = self._exchange(method, url, pairs, data)
        except (OSError, http.client.HTTPException) as error:
            self._link.close()
            tally.problems.append(f"{method} {url}: no answer, {error!r}")
            return
        tally.statuses[answer.status] += 1
        for problem in wrong(self._document, operation.path, method, answer):
            shown = (data or b"")[:300]
            tally.problems.append(
                f"{method} {url[:300]} {pairs} {shown!r}: {problem}; {answer.data[:300]!r}"
            )

    def _exchange(
        self, method: str, url: str, pairs: list[tuple[str, str]], data: bytes | None
    ) -> Answer:
        link = self._link
        link.putrequest(method, url, skip_accept_encoding=True)
        for name, value in pairs:
            link.putheader(name, value.encode("utf-8"))
        if data is not None:
            link.putheader("Content-Length", str(len(data)))
        link.endheaders(data)
        found = link.getresponse()
        return Answer(found.status, found.headers, found.read())


def wrong(made: Any, path: str, method: str, answer: Answer) -> Iterator[str]:
    """Yield what an answer has that is not as the document *made* says."""
    if answer.status >= 500:
        yield f"a {answer.status}"
    response = made["paths"][path][method.lower()]["responses"].get(str(answer.status))
    if response is None:
        yield f"status {answer.status} is not in the document"
        return
    if "$ref" in response:
        response = made["components"]["responses"][response["$ref"].rpartition("/")[2]]
    if path != "/healthz" and not answer.headers.get("X-OpenStack-Request-Id"):
        yield "no request id"
    content = response.get("content")
    if method == "HEAD" or content is None:
        if answer.data:
            yield "a body that is not in the document"
        return
    if answer.headers.get("Content-Type") != JSON:
        yield "no JSON"
        return
    try:
        shown = json.loads(answer.data)
    except ValueError:
        yield "no JSON inside"
        return
    check = jsonschema.Draft202012Validator(content[JSON]["schema"])
    yield from (error.message for error in check.iter_errors(shown))


def differs(version: int) -> Callable[[Any], bool]:
    """Return whether an operation is another one at *version* than at the latest."""
    latest, former = document.make(microversion.MAX), document.make(version)

    def whole(made: Any, operation: Any) -> str:
        found = made["paths"].get(operation.path, {}).get(operation.method.lower())
        text = json.dumps(found)
        for name in _SCHEMAS.findall(text):
            text += json.dumps(made["components"]["schemas"][name])
        return text

    return lambda operation: whole(latest, operation) != whole(former, operation)


@dataclass(slots=True)
class Odd:
    """What is odd about a case: one part of it is replaced."""

    kind: str
    value: Any
    at: int

    def into(self, case: Any, body: Any) -> Any:
        """Change the case, and return the body to send."""
        if self.kind == "path" and case.path_parameters:
            names = sorted(case.path_parameters)
            name = names[self.at % len(names)]
            word = urllib.parse.quote(self.value[:3000].encode("utf-8", "surrogatepass"), safe="")
            case.path_parameters = {**case.path_parameters, name: word or "%20"}
        elif self.kind == "query":
            names = sorted(case.query or {}) or ["limit"]
            clean = self.value[:3000].encode("utf-8", "replace").decode()
            case.query = {**(case.query or {}), names[self.at % len(names)]: clean}
        elif self.kind == "body" and isinstance(body, (dict, list)):
            return _replaced(body, self.at, self.value)
        return body

    def around(
        self, data: bytes | None, pairs: list[tuple[str, str]]
    ) -> tuple[bytes | None, list[tuple[str, str]]]:
        """Return what goes over the wire instead of this."""
        if self.kind == "raw" and data is not None:
            return self.value, pairs
        if self.kind == "type" and data is not None:
            return data, [(n, v) for n, v in pairs if n != "Content-Type"] + [
                ("Content-Type", self.value)
            ]
        if self.kind == "header":
            return data, [*pairs, self.value]
        if self.kind == "twice":
            return data, [*pairs, pairs[self.at % len(pairs)]]
        return data, pairs


def _odd(operation: Any) -> st.SearchStrategy[Odd]:
    at = st.integers(0, 10**6)
    header = st.builds(Odd, st.just("header"), st.sampled_from(HEADERS), at)
    twice = st.builds(Odd, st.just("twice"), st.none(), at)
    query = st.builds(Odd, st.just("query"), st.sampled_from(TEXTS), at)
    kinds = [header, twice, query]
    if "{" in operation.path:
        kinds.append(st.builds(Odd, st.just("path"), st.sampled_from(TEXTS), at))
    if operation.body:
        body = st.builds(Odd, st.just("body"), st.sampled_from(VALUES), at)
        raw = st.builds(Odd, st.just("raw"), st.sampled_from(BODIES), at)
        kind = st.builds(Odd, st.just("type"), st.sampled_from(TYPES), at)
        # Most mistakes are in bodies.
        kinds += [body, body, body, body, raw, kind]
    return st.one_of(*kinds)


def _replaced(body: Any, at: int, value: Any) -> Any:
    """Return *body* with one of its parts replaced."""
    made = copy.deepcopy(body)
    places: list[tuple[Any, Any]] = []
    nodes = [made]
    while nodes:
        node = nodes.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, inner in items:
            places.append((node, key))
            if isinstance(inner, (dict, list)):
                nodes.append(inner)
    if not places:
        return value
    node, key = places[at % len(places)]
    if isinstance(node, dict) and isinstance(value, str) and at % 7 == 0:
        node[value] = node.pop(key)
    else:
        node[key] = value
    return made


def _bootable(body: Any) -> Any:
    """Return the body of a create with things that exist."""
    if not isinstance(body, dict) or not isinstance(body.get("server"), dict):
        return body
    real = {"flavorRef": api_module.NANO, "imageRef": api_module.IMAGE, "networks": "none"}
    unserved = ("personality", "block_device_mapping", "block_device_mapping_v2")
    server = {name: value for name, value in body["server"].items() if name not in unserved}
    return {**body, "server": {**server, **real}}


def _sendable(name: str, value: Any) -> bool:
    """Tell whether a header can be sent at all."""
    return bool(name) and name.isascii() and isinstance(value, str) and "\n" not in value + name
