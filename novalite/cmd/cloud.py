# SPDX-License-Identifier: Apache-2.0
"""``novalite``: the development cloud on one machine, and what helps to understand it.

A user's command. It only reads words, calls ``devcloud`` and prints; it is no service and runs on
native threads.
"""

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from novalite.cmd import explain, questions, whatif
from novalite.devcloud import cloud, logs, state
from novalite.devcloud.errors import DevCloudError

EXIT_NOT_UP = 3  # as `systemctl status` says it
WIDE = 300  # columns, where nobody watches: a pipe has no edge to fold URLs at


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = arguments.run(arguments)
    except DevCloudError as error:
        # No markup: log lines are full of square brackets.
        _plain(Console(stderr=True), f"novalite: {error}")
        code = 1
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing that is still buffered may be written.
        sys.stderr.close()
        code = 0
    sys.exit(code)


def _terminate(_number: int, _frame: Any) -> None:
    # Raised in the main thread, so that a half-started cloud is taken down on the way out.
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="novalite", description="A whole Compute cloud on this machine, for development."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    up = _command(commands, "up", _up, "start the cloud; what runs already is left alone")
    up.add_argument("--computes", type=_count, metavar="N", help="compute hosts (default: 1)")
    for words, text in (
        ("--conductors", "conductors, each on a host name of its own"),
        ("--schedulers", "schedulers, each on a host name of its own"),
        ("--api-workers", "processes that serve the API"),
    ):
        up.add_argument(words, type=_count, metavar="N", help=f"{text} (default: 1)")
    _add_urls(up)
    _command(commands, "down", _down, "stop the cloud; servers, flavors and images are kept")
    _command(commands, "ps", _ps, "show what runs where")
    again = _command(commands, "reload", _reload, "let services read their options again")
    again.add_argument("service", nargs="?", metavar="SERVICE", help="only this one")
    show = _command(commands, "logs", _logs, "show the logs, merged by time")
    show.add_argument("service", nargs="?", metavar="SERVICE", help="only this one's")
    show.add_argument("-f", "--follow", action="store_true", help="go on with new lines")
    show.add_argument(
        "-n", "--lines", type=_lines, default=200, metavar="N", help="last lines (default: 200)"
    )
    text = "say what a server does and why, and what would change it"
    told = commands.add_parser("explain", help=text, description=text)
    told.set_defaults(run=explain.run)
    explain.add_arguments(told)
    text = "count how many more servers of a flavor fit, and say what binds"
    fits = commands.add_parser("capacity", help=text, description=text)
    fits.set_defaults(run=questions.capacity)
    questions.add_capacity(fits)
    text = "say what every filter thinks of a host for a server"
    why = commands.add_parser("why-not", help=text, description=text)
    why.set_defaults(run=questions.why_not)
    questions.add_why_not(why)
    text = "compare where requests land under old and new settings, on the same hosts"
    compared = commands.add_parser("whatif", help=text, description=text)
    compared.set_defaults(run=whatif.run)
    whatif.add_arguments(compared)
    demo = _command(commands, "demo", _demo, "start the cloud, boot a server, explain, stop")
    demo.add_argument("--computes", type=_count, metavar="N", default=2, help="default: 2")
    demo.add_argument("--keep", action="store_true", help="leave the cloud running")
    _add_urls(demo)
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    command.add_argument(
        "--state-dir",
        type=Path,
        default=state.default_directory(),
        metavar="DIR",
        help="where the cloud keeps its files (default: %(default)s)",
    )
    return command


def _add_urls(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--transport-url",
        type=_broker,
        metavar="URL",
        help="use this broker (rabbit://USER:PASSWORD@HOST/VHOST) instead of a private one",
    )
    command.add_argument(
        "--database-url",
        metavar="URL",
        help="use this database (a SQLAlchemy URL) instead of a SQLite file",
    )


def _count(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 100")
    return number


def _lines(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


def _broker(text: str) -> str:
    # Without the URL itself, which may hold a password.
    if not text.startswith("rabbit://"):
        raise argparse.ArgumentTypeError("the URL must begin with rabbit://")
    return text


def request(arguments: argparse.Namespace) -> cloud.Request:
    """Return what the words of ``up`` and ``demo`` ask for."""
    return cloud.Request(
        computes=arguments.computes,
        **{name: getattr(arguments, name, None) for name in cloud.COUNTS},
        transport_url=arguments.transport_url,
        database_url=arguments.database_url,
    )


def _up(arguments: argparse.Namespace) -> int:
    console = Console()
    devcloud = cloud.DevCloud(arguments.state_dir)
    if bring_up(devcloud, request(arguments), console):
        console.print()
    else:
        _plain(console, f"The cloud in {devcloud.directory} is up already.")
    print_statuses(devcloud, console)
    _plain(console, "\nTry:")
    program = Path(sys.argv[0]).parent / "openstack"
    client = str(program) if program.exists() else "openstack"
    for line in (
        f"export OS_CLIENT_CONFIG_FILE={devcloud.clouds_file} OS_CLOUD=novalite",
        f"{client} server create --flavor m1.tiny --image cirros --network private --wait first",
        f"novalite logs -f{_directory_words(arguments)}",
    ):
        _plain(console, f"  {line}")
    return 0


def bring_up(devcloud: cloud.DevCloud, wanted: cloud.Request, console: Console) -> bool:
    """Start the cloud and show how it goes; return False if it was up already."""

    def shown(name: str, where: str, seconds: float) -> None:
        console.print(
            f"[green]✓[/] {name:<10} {where}  [dim]{seconds:.1f} s[/]",
            highlight=False,
            soft_wrap=True,
        )

    with _spinner(console, "The cloud is starting"):
        return devcloud.up(wanted, shown)


@contextlib.contextmanager
def _spinner(console: Console, text: str) -> Iterator[None]:
    """Show that something goes on, where somebody watches; a log file gets nothing."""
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def print_statuses(devcloud: cloud.DevCloud, console: Console) -> bool:
    """Print a table of the processes; return True if all of them run."""
    table = Table(box=None, pad_edge=False)
    for heading in ("service", "pid", "health", "memory", "up for", "where"):
        table.add_column(heading, overflow="fold", header_style="bold")
    complete = True
    if not console.is_terminal:
        console.width = WIDE
    for status in devcloud.statuses():
        complete = complete and status.pid is not None
        pid = str(status.pid) if status.pid else "[red]dead[/]"
        memory = f"{status.memory // 1024} MB" if status.memory else "-"
        age = _duration(time.time() - status.began) if status.pid else "-"
        table.add_row(status.name, pid, _health(status), memory, age, status.where)
    console.print(table, highlight=False)
    _plain(console, f"\nLogs: {devcloud.services.logs}")
    return complete


def _health(status: cloud.Status) -> str:
    if not status.health:
        return "-"
    return "[green]ok[/]" if status.health == "ok" else f"[red]{status.health}[/]"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _plain(console: Console, text: str) -> None:
    """Print a line as it is: no markup, no colours, no breaks of ours."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _directory_words(arguments: argparse.Namespace) -> str:
    same = arguments.state_dir == state.default_directory()
    return "" if same else f" --state-dir {arguments.state_dir}"


def _down(arguments: argparse.Namespace) -> int:
    console = Console()
    devcloud = cloud.DevCloud(arguments.state_dir)
    with _spinner(console, "The cloud is stopping"):
        stopped = devcloud.down()
    if stopped:
        _plain(console, f"Stopped: {', '.join(stopped)}")
    else:
        _plain(console, f"Nothing runs in {devcloud.directory}.")
    return 0


def _ps(arguments: argparse.Namespace) -> int:
    console = Console()
    devcloud = cloud.DevCloud(arguments.state_dir)
    if not devcloud.running():
        _plain(console, f"Nothing runs in {devcloud.directory}.")
        return EXIT_NOT_UP
    return 0 if print_statuses(devcloud, console) else 1


def _reload(arguments: argparse.Namespace) -> int:
    devcloud = cloud.DevCloud(arguments.state_dir)
    told = devcloud.reload(arguments.service)
    _plain(Console(), f"Told: {', '.join(told)}; novalite logs shows what has changed")
    return 0


def _logs(arguments: argparse.Namespace) -> int:
    devcloud = cloud.DevCloud(arguments.state_dir)
    files = logs.choose(devcloud.logs(), arguments.service)
    for line in logs.merged(files, arguments.lines):
        print(line)
    if arguments.follow:
        sys.stdout.flush()
        for line in logs.follow(files):
            print(line, flush=True)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from novalite.cmd import demo

    console = Console()
    devcloud = cloud.DevCloud(arguments.state_dir)
    was_up = not bring_up(devcloud, request(arguments), console)
    try:
        return demo.run(devcloud, console)
    finally:
        if not arguments.keep and not was_up:
            with _spinner(console, "The cloud is stopping"):
                devcloud.down()
            console.print("The cloud is down again.", highlight=False)


if __name__ == "__main__":
    main()
