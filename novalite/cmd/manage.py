# SPDX-License-Identifier: Apache-2.0
"""``novalite-manage``: the administrator's commands that need no API.

It works on the database and on nothing else, starts no thread and needs no bus, so it can be used
before any service runs; only ``audit`` asks the computes too. What is about the program alone, as
``api openapi``, needs no database and no option either.
"""

import argparse
import datetime
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from novalite import concurrency, exception
from novalite import conf as conf_module
from novalite.cmd import audit, launch
from novalite.conf import load, rules
from novalite.db import engine, migrate, services, storage, survey
from novalite.objects.service import Service

PROGRAM = "novalite-manage"
COLUMNS = ("Binary", "Host", "Zone", "Status", "State", "Updated_At")

Command = Callable[[cfg.ConfigOpts, engine.Database, argparse.Namespace], None]


def main(argv: list[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 it could not be done, 2 wrong usage; ``audit``: 3, 4."""
    words = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    if "alone" in words:
        words.alone(words)
        return
    conf = conf_module.CONF
    files: list[str] = words.files_before + words.files
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    checks: list[load.Rule] = [rules.check_database]
    register: list[load.Register] = []
    if "bus" in words:
        concurrency.hush()
        from novalite.conf import messaging

        checks.append(rules.check_bus)
        register.append(messaging.register_opts)
    try:
        for caution in load.Loader(conf, PROGRAM, files, register, checks).load():
            print(f"{PROGRAM}: warning: {caution}", file=sys.stderr)
        command: Command = words.command
        command(conf, storage.connect(conf, patient=True), words)
    except load.ConfigError as error:
        launch.die(PROGRAM, str(error))
    except exception.NovaliteException as error:
        reason = getattr(error.__cause__, "orig", None)
        launch.die(PROGRAM, f"{error.message()} {reason or ''}")


def _parser() -> argparse.ArgumentParser:
    # Accepted before and after the command, since both orders are natural.
    files = files_parser("files")
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Administration of novalite without its API.",
        parents=[files_parser("files_before")],
    )
    nouns = parser.add_subparsers(metavar="NOUN", required=True)
    verbs = nouns.add_parser("db", help="the tables").add_subparsers(metavar="VERB", required=True)
    _add(verbs, files, "sync", db_sync, "make the tables, or bring them to the present form")
    _add(verbs, files, "version", db_version, "print the revision of the tables")
    verbs = nouns.add_parser("service", help="the services").add_subparsers(
        metavar="VERB", required=True
    )
    listing = _add(verbs, files, "list", service_list, "print all services with their state")
    listing.add_argument("-f", "--format", choices=("table", "json"), default="table")
    _add_audit(nouns, files)
    verbs = nouns.add_parser("api", help="the Compute API").add_subparsers(
        metavar="VERB", required=True
    )
    _add_openapi(verbs)
    return parser


def _add_audit(nouns: Any, files: argparse.ArgumentParser) -> None:
    text = "compare servers, allocations, nodes, claims and guests, and name every difference"
    parser = _add(nouns, files, "audit", audit.run, text)
    parser.add_argument(
        "--repair", action="store_true", help="let each owner put right what is his"
    )
    parser.add_argument("-f", "--format", choices=("table", "json"), default="table")
    parser.set_defaults(bus=True)


def _add_openapi(verbs: Any) -> None:
    text = "print the API as an OpenAPI 3.1 document"
    parser = verbs.add_parser("openapi", help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument(
        "--microversion",
        metavar="2.N",
        type=_microversion,
        default="latest",
        help="what is served at this microversion; default the latest",
    )
    parser.set_defaults(alone=api_openapi)


def _microversion(text: str) -> int:
    from novalite.api import microversion

    try:
        return microversion.requested(None, text)
    except exception.NovaliteException as error:
        raise argparse.ArgumentTypeError(error.message()) from None


def api_openapi(words: argparse.Namespace) -> None:
    """Print the OpenAPI document of one microversion."""
    # The application brings the bus along, which is slow to import and not used here. Nothing runs
    # at the same time as this, so no thread backend is chosen.
    concurrency.hush()
    from novalite.api.openapi import document

    print(json.dumps(document.make(words.microversion), indent=2))


def files_parser(dest: str) -> argparse.ArgumentParser:
    """Return a parser of --config-file and --config-dir, a parent of others."""
    parser = argparse.ArgumentParser(add_help=False)
    for option, name, default in (
        ("--config-file", "PATH", "/etc/novalite/novalite.conf if it exists"),
        ("--config-dir", "DIR", "none"),
    ):
        parser.add_argument(
            option,
            metavar=name,
            dest=dest,
            default=[],
            action=_Word,
            help=f"may be given again; default: {default}",
        )
    return parser


class _Word(argparse.Action):
    """Keeps an option as the word that oslo.config will read."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        word = f"{self.option_strings[0]}={values}"
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), word])


def _add(
    verbs: Any, files: argparse.ArgumentParser, name: str, command: Command, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", parents=[files]
    )
    parser.set_defaults(command=command)
    return parser


def db_sync(_conf: cfg.ConfigOpts, database: engine.Database, _words: argparse.Namespace) -> None:
    """Make the tables, or bring them to the present form, if all open work can go on with it."""
    survey.check_drained(database)
    before, after = migrate.sync(database)
    if before == after:
        print(f"The database is at revision {after} already.")
    else:
        print(f"The database is now at revision {after}; it was at {before or 'none'}.")


def db_version(
    _conf: cfg.ConfigOpts, database: engine.Database, _words: argparse.Namespace
) -> None:
    """Print the revision of the tables, and on the same line what this program needs."""
    found = migrate.version(database)
    print(f"{found or 'none'} (this program needs {migrate.HEAD})")


def service_list(
    conf: cfg.ConfigOpts, database: engine.Database, words: argparse.Namespace
) -> None:
    """Print all services, one a line or as JSON."""
    migrate.check(database)
    found = database.read(services.list_all)
    rows = [_row(conf, service) for service in found]
    if words.format == "json":
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=2))
    else:
        _print_table(rows)


def _row(conf: cfg.ConfigOpts, service: Service) -> tuple[str, ...]:
    compute = service.binary == "nova-compute"
    zone = conf.default_availability_zone if compute else conf.internal_service_availability_zone
    return (
        service.binary,
        service.host,
        str(zone),
        "disabled" if service.disabled else "enabled",
        "up" if service.is_up(float(conf.service_down_time)) else "down",
        _written(service.last_seen_up),
    )


def _written(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[index]) for row in [COLUMNS, *rows]) for index in range(len(COLUMNS))]
    for row in [COLUMNS, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    main()
