# SPDX-License-Identifier: Apache-2.0
"""``novalite logs``: the log files of a cloud as one stream."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from novalite.devcloud import processes
from novalite.devcloud.errors import CloudError

# Services write "2026-01-31 12:00:00.123", RabbitMQ "2026-01-31 12:00:00.123456+00:00".
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3}")
_INTERVAL = 0.2


def choose(files: list[Path], service: str | None) -> list[Path]:
    """Return the log of one service, or all.

    :raises CloudError: there is no log of that name, or none at all
    """
    if not files:
        raise CloudError("there are no logs: was `novalite up` run with this directory?")
    if service is None:
        return files
    chosen = [file for file in files if file.stem == service]
    if not chosen:
        names = ", ".join(file.stem for file in files)
        raise CloudError(f"there is no log of {service}; there are: {names}")
    return chosen


def merged(files: list[Path], count: int) -> list[str]:
    """Return the last *count* lines of all files in the order of their times.

    A line without a time, of a traceback for example, stays behind the one before it. With more
    than one file each line begins with the name of its service.
    """
    records: list[tuple[str, list[str]]] = []
    for file in files:
        label = _label(file, files)
        own: list[tuple[str, list[str]]] = []
        for line in processes.tail(file, count):
            stamp = _STAMP.match(line)
            if stamp or not own:
                own.append((stamp.group() if stamp else "", []))
            own[-1][1].append(label + line)
        records += own
    records.sort(key=lambda record: record[0])
    # -0 would be everything.
    return [line for _stamp, lines in records for line in lines][-count:] if count else []


def follow(files: list[Path]) -> Iterator[str]:
    """Yield lines that are written from now on; never ends by itself."""
    streams: list[tuple[str, IO[bytes]]] = []
    rests: dict[str, bytes] = {}
    try:
        for file in files:
            stream: IO[bytes] = file.open("rb")
            stream.seek(0, 2)
            streams.append((_label(file, files), stream))
        while True:
            silent = True
            for label, stream in streams:
                for line in _new_lines(label, stream, rests):
                    silent = False
                    yield label + line
            if silent:
                time.sleep(_INTERVAL)
    finally:
        for _, opened in streams:
            opened.close()


def _new_lines(label: str, stream: IO[bytes], rests: dict[str, bytes]) -> list[str]:
    """Return the whole lines; what has no line end yet waits in *rests*."""
    data = rests.get(label, b"") + stream.read()
    whole, _, rests[label] = data.rpartition(b"\n")
    return whole.decode(errors="replace").split("\n") if whole else []


def _label(file: Path, files: list[Path]) -> str:
    return f"{file.stem:<10} " if len(files) > 1 else ""
