# SPDX-License-Identifier: Apache-2.0
"""FLEET.yaml and WORKLOAD.yaml of ``novalite whatif``: hosts and requests as an operator writes
them.

What is wrong is told with the place in the file. The files are documented by their examples in
etc/novalite and by the schemas here, which allow nothing else.
"""

from pathlib import Path
from typing import Any

import jsonschema
import yaml

from novalite import exception
from novalite.advisor.whatif.fleet import Host, Request
from novalite.advisor.whatif.settings import HOST_OPTIONS
from novalite.objects.aggregate import Aggregate
from novalite.objects.flavor import Flavor

Json = dict[str, Any]
_COUNT = {"type": "integer", "minimum": 1, "maximum": 100_000}
_AMOUNT = {"type": "integer", "minimum": 0}
_NAME = {"type": "string", "minLength": 1}
_TEXTS = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}


def _mapping(properties: Json, *required: str) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Json, least: int = 0) -> Json:
    return {"type": "array", "items": items, "minItems": least}


_HOST = _mapping(
    {
        "name": _NAME,
        "count": _COUNT,
        "memory_mb": _AMOUNT,
        "vcpus": _AMOUNT,
        "local_gb": _AMOUNT,
        "used": _mapping(dict.fromkeys(("memory_mb", "vcpus", "local_gb", "servers"), _AMOUNT)),
        "disk_available_least": {"type": "integer"},
        "aggregates": _list(_NAME),
        "up": {"type": "boolean"},
        "disabled": {"type": "boolean"},
        "platforms": _list(_list(_NAME, 3)),
        **dict.fromkeys(HOST_OPTIONS, {"type": "number", "minimum": 0}),
    },
    "name",
    "memory_mb",
    "vcpus",
    "local_gb",
)
_AGGREGATE = _mapping({"name": _NAME, "availability_zone": _NAME, "metadata": _TEXTS}, "name")
FLEET = _mapping({"hosts": _list(_HOST, 1), "aggregates": _list(_AGGREGATE)}, "hosts")
_FLAVOR = _mapping(
    {
        **dict.fromkeys(("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb"), _AMOUNT),
        "extra_specs": _TEXTS,
    },
    "vcpus",
    "memory_mb",
)
_REQUEST = _mapping(
    {
        "name": _NAME,
        "count": _COUNT,
        "servers": _COUNT,
        "flavor": _NAME,
        "availability_zone": _NAME,
        "volume_backed": {"type": "boolean"},
        "image_properties": _TEXTS,
        "hints": {"type": "object"},
        "project_id": _NAME,
        "group": _mapping(
            {
                "policy": {
                    "enum": ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]
                },
                "max_server_per_host": _COUNT,
            },
            "policy",
        ),
    },
    "name",
    "flavor",
)
WORKLOAD = _mapping(
    {
        "flavors": {"type": "object", "additionalProperties": _FLAVOR},
        "requests": _list(_REQUEST, 1),
        "order": {"enum": ["mixed", "given"]},
    },
    "flavors",
    "requests",
)


class WrongFile(exception.NovaliteException):
    """A file cannot be used; the text names the place in it."""


def fleet(path: str) -> list[Host]:
    """Return the hosts of a FLEET.yaml.

    :raises WrongFile: it cannot be read, or something in it is wrong
    """
    body = _load(path, FLEET)
    known = {
        each["name"]: Aggregate(
            number,
            f"aggregate-{number}",
            each["name"],
            each.get("availability_zone"),
            {key: _text(value) for key, value in each.get("metadata", {}).items()},
        )
        for number, each in enumerate(body.get("aggregates", []), start=1)
    }
    hosts: dict[str, Host] = {}
    for place, each in enumerate(body["hosts"]):
        missing = [name for name in each.get("aggregates", []) if name not in known]
        if missing:
            raise WrongFile(f"{path}: hosts[{place}]: there is no aggregate {missing[0]}")
        for name in _names(each["name"], each.get("count")):
            if name in hosts:
                raise WrongFile(f"{path}: hosts[{place}]: there are two hosts {name}")
            hosts[name] = _host(name, each, known)
    return list(hosts.values())


def _names(name: str, count: int | None) -> list[str]:
    if count is None:
        return [name]
    wide = max(len(str(count)), 2)
    return [f"{name}{number:0{wide}}" for number in range(1, count + 1)]


def _host(name: str, each: Json, known: dict[str, Aggregate]) -> Host:
    used = each.get("used", {})
    return Host(
        name=name,
        node=name,
        memory_mb=each["memory_mb"],
        vcpus=each["vcpus"],
        local_gb=each["local_gb"],
        memory_mb_used=used.get("memory_mb", 0),
        vcpus_used=used.get("vcpus", 0),
        local_gb_used=used.get("local_gb", 0),
        servers=used.get("servers", 0),
        disk_available_least=each.get("disk_available_least"),
        aggregates=tuple(known[each_name] for each_name in each.get("aggregates", [])),
        up=each.get("up", True),
        disabled=each.get("disabled", False),
        own={option: float(each[option]) for option in HOST_OPTIONS if option in each},
        **({"platforms": each["platforms"]} if "platforms" in each else {}),
    )


def workload(path: str) -> list[Request]:
    """Return the requests of a WORKLOAD.yaml in the order in which they come.

    :raises WrongFile: it cannot be read, or something in it is wrong
    """
    body = _load(path, WORKLOAD)
    requests: list[tuple[float, int, Request]] = []
    for place, each in enumerate(body["requests"]):
        if each["flavor"] not in body["flavors"]:
            raise WrongFile(f"{path}: requests[{place}]: there is no flavor {each['flavor']}")
        flavor = _flavor(each["flavor"], body["flavors"][each["flavor"]])
        count = each.get("count", 1)
        for number in range(count):
            # Mixed: each kind comes evenly over the whole time, as in life.
            when = (number + 0.5) / count if body.get("order", "mixed") == "mixed" else 0.0
            requests.append((when, place, _request(each, flavor)))
    requests.sort(key=lambda row: row[:2])
    return [request for _when, _place, request in requests]


def _flavor(name: str, each: Json) -> Flavor:
    specs = {key: _text(value) for key, value in each.get("extra_specs", {}).items()}
    return Flavor(
        name,
        name,
        each["vcpus"],
        each["memory_mb"],
        each.get("root_gb", 0),
        each.get("ephemeral_gb", 0),
        each.get("swap_mb", 0),
        extra_specs=specs,
    )


def _request(each: Json, flavor: Flavor) -> Request:
    group = each.get("group", {})
    return Request(
        kind=each["name"],
        flavor=flavor,
        servers=each.get("servers", 1),
        availability_zone=each.get("availability_zone"),
        volume_backed=each.get("volume_backed", False),
        image_properties=each.get("image_properties", {}),
        hints=each.get("hints", {}),
        project_id=each.get("project_id", "project"),
        policy=group.get("policy"),
        max_server_per_host=group.get("max_server_per_host", 1),
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _load(path: str, schema: Json) -> Any:
    try:
        body = yaml.safe_load(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise WrongFile(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongFile(f"{path}: not text in UTF-8") from None
    except yaml.YAMLError as error:
        raise WrongFile(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    wrong = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(body)
    )
    if wrong is not None:
        place = wrong.json_path.removeprefix("$").removeprefix(".")
        raise WrongFile(f"{path}: {place + ': ' if place else ''}{wrong.message}")
    return body
