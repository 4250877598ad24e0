# SPDX-License-Identifier: Apache-2.0
"""``novalite-status``: whether the new program can take over this deployment, and its options.

``config check`` and ``config explain`` are in :mod:`config_check`. Here is ``upgrade check``: run
it with the new program before its services are started. It reads options and database, needs no bus
and changes nothing. Table and exit codes are those of ``nova-status``: 0 all is well, 1 at least
one warning, 2 at least one failure, 255 it could not be looked at. Nova's checks of cells and
placement have no counterpart here.
"""

import argparse
import logging
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from oslo_config import cfg

from novalite import concurrency

# Libraries talk at their import about a thread backend that is not used here.
concurrency.hush()

from novalite import conf as conf_module
from novalite import exception
from novalite.api import policy, quotas
from novalite.cmd import config_check, manage
from novalite.conf import load, rules
from novalite.db import engine, migrate, services, storage, survey
from novalite.objects.service import OLDEST, Service

PROGRAM = "novalite-status"
SUCCESS, WARNING, FAILURE, UNEXPECTED = 0, 1, 2, 255
_WORDS = {SUCCESS: "Success", WARNING: "Warning", FAILURE: "Failure"}
# Seconds that an open action may be past its deadline before somebody should look.
_OVERDUE = 60.0
# Names that are listed before the rest is only counted.
_LISTED = 5
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found."""

    code: int = SUCCESS
    details: str = ""


Check = Callable[[cfg.ConfigOpts, engine.Database], Result]


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the checks, print the table and exit with the worst result."""
    words = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    if "alone" in words:
        sys.exit(words.alone(words))
    conf = conf_module.CONF
    files: list[str] = words.files_before + words.files
    logging.basicConfig(level=logging.CRITICAL, format="%(message)s")
    register = [policy.register_opts]
    try:
        loader = load.Loader(conf, PROGRAM, files, register, [rules.check_database])
        cautions = loader.load()
        results = run(conf, storage.connect(conf), cautions)
    except (load.ConfigError, exception.NovaliteException) as error:
        text = error.message() if isinstance(error, exception.NovaliteException) else str(error)
        print(f"{PROGRAM}: {' '.join(text.split())}", file=sys.stderr)
        sys.exit(UNEXPECTED)
    print(table(results))
    sys.exit(max(result.code for result in results.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Checks of a novalite deployment.",
        parents=[manage.files_parser("files_before")],
    )
    nouns = parser.add_subparsers(metavar="NOUN", required=True)
    upgrade = nouns.add_parser("upgrade", help="readiness for an upgrade")
    verbs = upgrade.add_subparsers(metavar="VERB", required=True)
    text = "Tell what stands in the way of an upgrade; exit code 0, 1 (warning) or 2 (failure)."
    verbs.add_parser("check", help=text, description=text, parents=[manage.files_parser("files")])
    config_check.add_parsers(nouns)
    return parser


def run(conf: cfg.ConfigOpts, database: engine.Database, cautions: list[str]) -> dict[str, Result]:
    """Return the result of each check by its name.

    :param cautions: what the rules about options had to say
    """
    results = {"Database Revision": _revision(database)}
    results["Service Times"] = Result(WARNING, "; ".join(cautions)) if cautions else Result()
    results["Policy File"] = _policy(conf)
    for name, check in CHECKS.items():
        if results["Database Revision"].code == SUCCESS:
            results[name] = check(conf, database)
        elif name == "Open Actions":
            results[name] = _kinds(database)
    return results


def _revision(database: engine.Database) -> Result:
    try:
        migrate.check(database)
    except exception.ConfigurationError as error:
        return Result(FAILURE, f"{error.message()}. The other checks need the tables.")
    return Result()


def _policy(conf: cfg.ConfigOpts) -> Result:
    if str(conf.oslo_policy.policy_file).endswith(".json"):
        return Result(
            FAILURE, "policy_file must be YAML; convert it with oslopolicy-convert-json-to-yaml"
        )
    try:
        cautions = policy.check_files(conf)
    except load.ConfigError as error:
        return Result(FAILURE, str(error))
    return Result(WARNING, "; ".join(cautions)) if cautions else Result()


def _kinds(database: engine.Database) -> Result:
    try:
        survey.check_drained(database)
    except exception.ConfigurationError as error:
        return Result(FAILURE, error.message())
    return Result()


def _services(conf: cfg.ConfigOpts, database: engine.Database) -> Result:
    found = database.read(services.list_all)
    old = [service for service in found if service.version < OLDEST]
    up = [service for service in old if service.is_up(float(conf.service_down_time))]
    if up:
        return Result(FAILURE, f"running services are older than this program: {_named(up)}")
    if old:
        return Result(
            WARNING,
            f"services that are down were last started with an older program: {_named(old)}. "
            "Upgrade them before they are started, or delete their records",
        )
    return Result()


def _named(found: list[Service]) -> str:
    return _listed([f"{each.binary} on {each.host} (version {each.version})" for each in found])


def _listed(names: list[str]) -> str:
    rest = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _nodes(_conf: cfg.ConfigOpts, database: engine.Database) -> Result:
    hosts = database.read(survey.hosts_without_nodes)
    nodes = database.read(survey.nodes_without_hosts)
    texts = []
    if hosts:
        texts.append(f"hosts that never told what they have, and get no servers: {_listed(hosts)}")
    if nodes:
        texts.append(f"nodes whose service is gone: {_listed(nodes)}")
    return Result(WARNING, "; ".join(texts)) if texts else Result()


def _actions(_conf: cfg.ConfigOpts, database: engine.Database) -> Result:
    unknown = _kinds(database)
    if unknown.code:
        return unknown
    found = database.read(survey.open_actions)
    overdue = database.read(lambda conn: survey.overdue_actions(conn, _OVERDUE))
    if overdue:
        return Result(
            WARNING,
            f"{overdue} open actions are more than {_OVERDUE:.0f} s past their deadline: does a "
            "conductor run, with bus and database?",
        )
    details = f"{survey.words(found)} open; they go on with the new program" if found else ""
    return Result(SUCCESS, details)


def _quotas(conf: cfg.ConfigOpts, database: engine.Database) -> Result:
    over = database.read(lambda conn: survey.projects_over_quota(conn, quotas.options(conf)))
    if not over:
        return Result()
    names = [f"{project}: {', '.join(what)}" for project, what in over.items()]
    return Result(
        WARNING, f"projects have more than they may and can make nothing new: {_listed(names)}"
    )


CHECKS: dict[str, Check] = {
    "Older Services": _services,
    "Compute Nodes": _nodes,
    "Open Actions": _actions,
    "Quota Usage": _quotas,
}


def table(results: dict[str, Result]) -> str:
    """Return the results as ``nova-status`` prints them."""
    blocks = [["Upgrade Check Results"]]
    for name, result in results.items():
        details = textwrap.wrap(
            f"Details: {result.details or 'None'}", _WIDTH, break_on_hyphens=False
        )
        blocks.append(
            [f"Check: {name}", f"Result: {_WORDS[result.code]}"]
            + [line if index == 0 else f"  {line}" for index, line in enumerate(details)]
        )
    width = max(len(line) for block in blocks for line in block)
    rule = f"+{'-' * (width + 2)}+"
    lines = [rule]
    for block in blocks:
        lines += [f"| {line:{width}} |" for line in block]
        lines.append(rule)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
