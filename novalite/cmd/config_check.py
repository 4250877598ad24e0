# SPDX-License-Identifier: Apache-2.0
"""``novalite-status config check|explain``: reads words, calls the advisor and prints.

Called by ``cmd/status.py``. Files are read and nothing else: no bus, no database, no service, so it
may run on any machine. Exit codes of check: 0 nothing found, 1 warnings only, 2 at least one error
(a service would not start), 255 a file cannot be read. Of explain: 0, or 255.
"""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from novalite import concurrency, exception
from novalite.cmd import manage
from novalite.conf import files
from novalite.conf.files import ConfigError

if TYPE_CHECKING:
    from novalite.advisor.config_check.check import Report
    from novalite.advisor.config_check.finding import Totals

UNEXPECTED = 255


def add_parsers(nouns: Any) -> None:
    """Add the noun ``config`` with its verbs."""
    noun = nouns.add_parser("config", help="what stands in configuration files")
    verbs = noun.add_subparsers(metavar="VERB", required=True)
    text = (
        "Find unknown options, wrong values, former names and dangerous values in configuration "
        "files, with file and line; a nova.conf will do. Exit code 0, 1 (warnings), 2 (errors) or "
        "255 (a file cannot be read)."
    )
    parents = [manage.files_parser("files")]
    command = verbs.add_parser("check", help="find mistakes", description=text, parents=parents)
    command.add_argument("paths", nargs="*", metavar="FILE", help="read in this order")
    command.add_argument(
        "--all", action="store_true", help="list the options of Nova that have no effect too"
    )
    _add_common(command)
    command.set_defaults(alone=_check)
    text = "Tell an option's value, where it is set, who else sets it and its effect in numbers."
    command = verbs.add_parser("explain", help=text, description=text, parents=parents)
    command.add_argument("option", metavar="OPTION", help="NAME or SECTION.NAME")
    command.add_argument("paths", nargs="*", metavar="FILE", help="read in this order")
    _add_common(command)
    command.set_defaults(alone=_explain)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("-f", "--format", choices=("text", "json"), default="text")
    for name, text in (
        ("memory-mb", "MB of memory of the host"),
        ("vcpus", "threads of the host"),
        ("local-gb", "GB of disk of the host"),
    ):
        command.add_argument(
            f"--host-{name}",
            type=int,
            metavar="N",
            help=f"{text}, for sums with it (default: that of [fake_libvirt], if a file sets it)",
        )


def _check(words: argparse.Namespace) -> int:
    """Print what the check finds; return the exit code."""
    # The options of all libraries are slow to import, and their makers talk meanwhile.
    concurrency.hush()
    from novalite.advisor.config_check import check, known

    try:
        report = check.check(_paths(words), known.load(), _totals(words))
    except ConfigError as error:
        return _refuse(str(error))
    if words.format == "json":
        print(json.dumps(report.as_json(), indent=2))
        return report.code
    for each in report.findings:
        name = f"[{each.section}] {each.option}: " if each.option else ""
        name = name or (f"[{each.section}]: " if each.section else "")
        print(f"{each.file}, line {each.line}: {each.severity}: {name}{each.text}")
    if words.all:
        for foreign in report.foreign:
            print(f"{foreign.file}, line {foreign.line}: no effect: {foreign.option} is Nova's")
    print(_summary(report, words.all))
    return report.code


def _summary(report: "Report", everything: bool) -> str:
    found = Counter(each.severity for each in report.findings)
    where = f"{_many(report.settings, 'setting')} of {_many(len(report.files), 'file')}"
    text = f"{_many(found['error'], 'error')}, {_many(found['warning'], 'warning')} in {where}."
    if report.foreign:
        text += f" {_many(len(report.foreign), 'setting')} of Nova's without effect in novalite"
        text += "." if everything else " (--all lists them)."
    return text


def _many(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _explain(words: argparse.Namespace) -> int:
    """Print what is to say about an option; return the exit code."""
    concurrency.hush()
    from novalite.advisor.config_check import explain, known

    try:
        found = explain.explain(
            words.option, _paths(words), known.load(), _totals(words), os.environ
        )
    except ConfigError as error:
        return _refuse(str(error))
    except exception.NovaliteException as error:
        return _refuse(error.message())
    if words.format == "json":
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(line for each in found for line in explain.lines(each)))
    return 0


def _paths(words: argparse.Namespace) -> list[str]:
    """Return the files in the order of reading.

    :raises ConfigError: none is named, and there is no default one
    """
    before: list[str] = getattr(words, "files_before", [])
    paths = [*files.named([*before, *words.files]), *words.paths]
    if paths:
        return paths
    if Path(concurrency.DEFAULT_FILE).exists():
        return [concurrency.DEFAULT_FILE]
    if "option" in words:
        return []
    raise ConfigError(f"name a file; there is no {concurrency.DEFAULT_FILE}")


def _totals(words: argparse.Namespace) -> "Totals":
    from novalite.advisor.config_check.finding import Totals

    return Totals(words.host_memory_mb, words.host_vcpus, words.host_local_gb)


def _refuse(text: str) -> int:
    print(f"novalite-status: {' '.join(text.split())}", file=sys.stderr)
    return UNEXPECTED
