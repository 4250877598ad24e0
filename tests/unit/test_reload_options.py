# SPDX-License-Identifier: Apache-2.0
"""What SIGHUP may change: the options declared ``mutable``, and who keeps a copy of one."""

import ast
import re
from pathlib import Path

from novalite.conf import opts

ROOT = Path(__file__).parents[2]
MUTABLE = sorted(
    (section, opt.dest, opt.secret)
    for section, found in opts.list_opts()
    for opt in found
    if opt.mutable
)
# Where a constructor reads a mutable option, or hands the options to a function that may. Everybody
# else reads at each use. Whoever is added here takes the new value in its manager's reload, with a
# test beside its other ones, unless the object does not outlive a request.
KEPT = {
    "api/links.py": {"base(conf, req)"},  # made for each request
    "api/manager.py": {"make_wsgi(conf, bus, database, self._sender)"},  # makes objects; see there
    "api/policy.py": {"_fingerprint(conf)", "_load(conf)", "register_opts(conf)"},  # Policy.reload
    "api/views/servers.py": {"conf.default_availability_zone"},  # made for each request
    "compute/manager.py": {"_limit(conf)", "conf.max_concurrent_builds"},
    "conductor/manager.py": {"conf.conductor.task_lease", "conf.service_down_time"},
    "db/engine.py": {"url(conf)"},  # what the URL needs takes a restart
    "rpc.py": {"broker.url(conf)"},  # so does the bus
    "scheduler/manager.py": {"_settings(conf)", "make_pipeline(conf)"},
    "virt/libvirt/driver.py": {
        "config.cpu_policy(conf.libvirt)",
        "conf.libvirt.guest_overhead_mb",
    },
    "volume/cinder.py": {
        "super().__init__(conf, 'block storage', 'cinder', '/v3')"  # reads at each use
    },
    "virt/libvirt/fakelibvirt.py": {"fakenode.read_settings(conf)"},
}

# A conversion keeps nothing; oslo.messaging declares none of its options mutable.
HARMLESS = ("float", "int", "str", "bool", "dict.fromkeys", "messaging.get_rpc_transport")


def test_no_secret_can_change() -> None:
    """Clients keep sessions and connections that were made with the former one."""
    assert [(section, name) for section, name, secret in MUTABLE if secret] == []


def test_everybody_who_keeps_a_copy_is_known() -> None:
    names = {name for _section, name, _secret in MUTABLE}
    found = {}
    for file in sorted((ROOT / "novalite").rglob("*.py")):
        place = str(file.relative_to(ROOT / "novalite"))
        if place.startswith(("conf/", "cmd/", "neighbors/")):
            continue  # they have no mutable option
        kept = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                kept |= {text for inner in ast.walk(node) if (text := reads(inner, names))}
        if kept:
            found[place] = kept
    assert found == KEPT


def reads(node: ast.AST, names: set[str]) -> str:
    """Return the expression if it reads a mutable option or hands the options on."""
    text = ast.unparse(node)
    if isinstance(node, ast.Attribute) and node.attr in names and text.startswith("conf."):
        return text
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        function = ast.unparse(node.func)
        given = [ast.unparse(argument) for argument in node.args]
        passed = "conf" in given or re.search(r"\bconf\.[a-z_]+\b(?!\.)", ",".join(given))
        # A class keeps what it is given in an __init__ of its own.
        if passed and function.rpartition(".")[2].lstrip("_")[:1].islower():
            return "" if function in HARMLESS else text
    return ""


def test_the_operator_is_told() -> None:
    """The table in docs/operators.md names exactly the options that can change."""
    text = (ROOT / "docs" / "operators.md").read_text().partition("## Reload")[2]
    text = text.partition("\n## ")[0]
    told = set()
    for line in text.splitlines():
        if line.startswith("| `["):
            section = line.split("`")[1].strip("[]")
            # The second column; the third has words of its own.
            told |= {(section, name) for name in re.findall(r"`(\w+)`", line.split("|")[2])}
    ours = {(section, name) for section, name, _ in MUTABLE}
    library = {("DEFAULT", "debug"), ("DEFAULT", "log_config_append")}
    assert told == ours | library, "python -m tests.unit.test_reload_options prints the table"


if __name__ == "__main__":
    table: dict[str, list[str]] = {}
    for section_, name_, _ in MUTABLE:
        table.setdefault(section_, []).append(f"`{name_}`")
    for section_, names_ in table.items():
        print(f"| `[{section_}]` | {', '.join(names_)} | |")
