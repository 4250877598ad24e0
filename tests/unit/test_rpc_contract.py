# SPDX-License-Identifier: Apache-2.0
"""Client and server of each topic agree, and nothing of it changes without a new version.

To add a method or an argument with a default: give both sides the next minor version, note it in
the history at the head of ``rpcapi.py``, and add an entry for that version to CONTRACT. Anything
else is a new major version.
"""

import importlib
import inspect
import pkgutil
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import novalite
from novalite import context as context_module

# topic and version -> what can be called, in the order of the names
CONTRACT: dict[str, tuple[str, ...]] = {
    "compute 1.0": (
        "build_and_run_instances(builds: list[BuildRequest]) -> None",
        "destroy_instances(requests: list[DestroyRequest]) -> None",
        "get_console_output(instance_uuid: str, tail_length: int | None) -> str",
        "get_host_uptime(node: str) -> str",
        "ping() -> str",
    ),
    "compute 1.1": (
        "audit_books(repair: bool) -> HostBooks",
        "build_and_run_instances(builds: list[BuildRequest]) -> None",
        "destroy_instances(requests: list[DestroyRequest]) -> None",
        "get_console_output(instance_uuid: str, tail_length: int | None) -> str",
        "get_host_uptime(node: str) -> str",
        "ping() -> str",
    ),
    "conductor 1.0": (
        "ping() -> str",
        "register(host: str, binary: str, identity: str, nodes: list[str]) -> Registration",
        "report_state(report: Report) -> ReportAnswer",
    ),
    "conductor 1.1": (
        "ping() -> str",
        "register(host: str, binary: str, identity: str, nodes: list[str], version: int = 0) -> "
        "Registration",
        "report_state(report: Report) -> ReportAnswer",
    ),
    "conductor 1.2": (
        "get_kept(host: str) -> Registration",
        "ping() -> str",
        "register(host: str, binary: str, identity: str, nodes: list[str], version: int = 0) -> "
        "Registration",
        "report_state(report: Report) -> ReportAnswer",
    ),
    "conductor_tasks 1.0": ("run_reservations(reservation_ids: list[str]) -> None",),
    "scheduler 1.0": ("select_destinations(requests: list[SelectRequest]) -> list[SelectAnswer]",),
    "scheduler 1.1": (
        "count_capacity(spec: RequestSpec, hosts: list[str]) -> CapacityReport",
        "examine_hosts(spec: RequestSpec, hosts: list[str]) -> Examination",
        "select_destinations(requests: list[SelectRequest]) -> list[SelectAnswer]",
    ),
}
# client class -> endpoint class
SIDES = {
    "compute.rpcapi.ComputeAPI": "compute.manager.ComputeEndpoint",
    "conductor.rpcapi.ConductorAPI": "conductor.manager.ConductorEndpoint",
    "conductor.rpcapi.ConductorTaskAPI": "conductor.manager.TaskEndpoint",
    "scheduler.rpcapi.SchedulerAPI": "scheduler.manager.SchedulerEndpoint",
}


def modules(name: str) -> list[ModuleType]:
    """Return novalite's modules called *name*."""
    found = pkgutil.walk_packages(novalite.__path__, "novalite.")
    return [importlib.import_module(info.name) for info in found if info.name.endswith(f".{name}")]


def load(path: str) -> type:
    module, _, name = path.rpartition(".")
    loaded: type = getattr(importlib.import_module(f"novalite.{module}"), name)
    return loaded


def classes(name: str) -> list[type]:
    return [
        cls
        for module in modules(name)
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__
    ]


def short(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}".removeprefix("novalite.")


def exposed(endpoint: type) -> dict[str, Any]:
    """Return the methods that may be called over the bus."""
    methods = vars(endpoint).items()
    return {name: method for name, method in methods if getattr(method, "exposed", False)}


def public(cls: type) -> dict[str, Any]:
    return {
        name: method
        for name, method in vars(cls).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


def signature(method: Any) -> str:
    """Return name, arguments and result; types by their last name."""
    made = inspect.signature(method)
    arguments = [
        f"{parameter.name}: {type_name(parameter.annotation)}"
        + ("" if parameter.default is parameter.empty else f" = {parameter.default!r}")
        for parameter in list(made.parameters.values())[2:]
    ]
    result = type_name(made.return_annotation)
    return f"{method.__name__}({', '.join(arguments)}) -> {result}"


def type_name(hint: Any) -> str:
    text = hint.__name__ if isinstance(hint, type) and "[" not in str(hint) else str(hint)
    words = text.replace("[", " [ ").replace("]", " ] ").replace("|", " | ").split()
    last = [word.rpartition(".")[2] for word in words]
    return " ".join(last).replace(" [ ", "[").replace(" ]", "]")


class Bus:
    """Gives out a client that keeps what it is asked to send."""

    def __init__(self) -> None:
        self.conf = SimpleNamespace(long_rpc_timeout=1)
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def client(self, *_args: Any) -> "Bus":
        return self

    def prepare(self, **_options: Any) -> "Bus":
        return self

    def can_send_version(self, _version: str) -> bool:
        return True

    def call(self, _context: Any, method: str, **arguments: Any) -> None:
        self.sent.append((method, arguments))

    cast = call


@pytest.mark.parametrize(("client", "endpoint"), SIDES.items())
def test_both_sides_name_the_same_methods(client: str, endpoint: str) -> None:
    assert sorted(public(load(client))) == sorted(exposed(load(endpoint)))


@pytest.mark.parametrize(("client", "endpoint"), SIDES.items())
def test_what_is_sent_is_what_is_taken(client: str, endpoint: str) -> None:
    takes = exposed(load(endpoint))
    for name, method in public(load(client)).items():
        made = inspect.signature(method).parameters
        bus = Bus()
        values = {argument: 1 for argument in list(made)[2:]}
        getattr(load(client)(bus), name)(context_module.service_context(), **values)
        [(sent_name, sent)] = bus.sent
        assert sent_name == name
        server = inspect.signature(takes[name]).parameters
        assert list(server)[:2] == ["self", "context"], f"{endpoint}.{name}"
        assert list(made)[:2] == ["self", "context"], f"{client}.{name}"
        assert list(sent) == list(server)[2:], f"{endpoint}.{name}"
        for argument in sent:
            assert made[argument].kind is inspect.Parameter.KEYWORD_ONLY
            ours, theirs = made[argument].annotation, server[argument].annotation
            assert type_name(ours) == type_name(theirs), f"{client}.{name}: {argument}"


@pytest.mark.parametrize(("client", "endpoint"), SIDES.items())
def test_both_sides_have_one_version(client: str, endpoint: str) -> None:
    target = load(client).TARGET  # type: ignore[attr-defined]
    assert target.version == load(endpoint).target.version  # type: ignore[attr-defined]
    history = inspect.getdoc(inspect.getmodule(load(client))) or ""
    assert f"\n{target.version} " in history, (
        "the head of rpcapi.py tells what each version brought"
    )


@pytest.mark.parametrize(("client", "endpoint"), SIDES.items())
def test_no_change_without_a_new_version(client: str, endpoint: str) -> None:
    target = load(client).TARGET  # type: ignore[attr-defined]
    key = f"{target.topic} {target.version}"
    assert key in CONTRACT, f"add an entry for {key}"
    now = tuple(sorted(signature(method) for method in exposed(load(endpoint)).values()))
    assert now == CONTRACT[key], f"{key} is published: a change needs a new version"


def test_every_client_and_every_endpoint_is_known() -> None:
    clients = [short(cls) for cls in classes("rpcapi") if hasattr(cls, "TARGET")]
    endpoints = [short(cls) for cls in classes("manager") if exposed(cls)]
    assert sorted(clients) == sorted(SIDES)
    assert sorted(endpoints) == sorted(SIDES.values())


def test_endpoints_expose_all_they_show() -> None:
    hidden = {
        short(endpoint): sorted(set(public(endpoint)) - set(exposed(endpoint)))
        for endpoint in map(load, SIDES.values())
    }
    assert not any(hidden.values()), hidden


def test_signature_names_defaults_and_types() -> None:
    def method(
        self: Any, context: Any, *, one: list[str], two: int | None = None
    ) -> dict[str, int]:
        return {}

    assert signature(method) == "method(one: list[str], two: int | None = None) -> dict[str, int]"
