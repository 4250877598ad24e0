# SPDX-License-Identifier: Apache-2.0
"""``tox -e bench``: prints the speed table and the same as JSON; asserts nothing.

With NOVALITE_LOADGEN=PATH the load generator at PATH measures the boots too, for a comparison with
another cloud that it was run against. With NOVALITE_NOVA_PYTHON=PATH the scheduler's core is
measured beside that of Nova, which that Python must have.
"""

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from novalite import concurrency
from novalite.devcloud.broker import Broker
from tests.bench import rows, scheduler_core
from tests.functional.api import IMAGE, NANO


def main() -> None:
    """Measure what is asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="boots in a run")
    parser.add_argument("--only", nargs="*", help="some of: " + ", ".join(MEASURES))
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="novalite-bench-broker-") as directory:
        broker = Broker(Path(directory))
        broker.start()
        try:
            found = [
                row
                for name, measure in MEASURES.items()
                if not args.only or name in args.only
                for row in measure(broker, args.count)
            ]
        finally:
            broker.stop()
    show(found)
    document = {
        "python": platform.python_version(),
        "backend": os.environ.get(concurrency.ENVIRONMENT, f"auto ({concurrency.AUTO})"),
        "rows": [{"name": row.name, **row.figures} for row in found],
    }
    text = json.dumps(document, indent=1)
    print(text)
    if args.json:
        args.json.write_text(text)


def show(found: list[rows.Row]) -> None:
    """Print the table."""
    table = Table("measure", "Nova 34", "must", "aim", "novalite")
    for row in found:
        table.add_row(row.name, row.nova, row.must, row.aim, row.text)
    Console(width=150).print(table)


def _core(_broker: Broker, _count: int) -> list[rows.Row]:
    gc.set_threshold(200_000, 20, 50)  # as novalite-scheduler does at its start
    python = os.environ.get("NOVALITE_NOVA_PYTHON")
    found = []
    for (hosts, stream), (must, goal) in scheduler_core.GOALS.items():
        theirs = "-"
        if python and (rate := scheduler_core.nova(Path(python), hosts, stream, 4.0)):
            theirs = f"{rate:.1f}"
        row = rows.Row(
            f"scheduler core, decisions per CPU second, {hosts} hosts, {stream}",
            theirs,
            str(must),
            str(goal),
        )
        row.figures["novalite"] = round(scheduler_core.measure(hosts, stream, 4.0), 1)
        row.figures["plain loop"] = round(
            scheduler_core.measure(hosts, stream, 2.0, plainly=True), 1
        )
        found.append(row)
    return found


def _loadgen(broker: Broker, count: int) -> list[rows.Row]:
    path = os.environ.get("NOVALITE_LOADGEN")
    if not path:
        return []
    row = rows.Row("the generator of NOVALITE_LOADGEN, C=10, 20 hosts", "2.1", "40", "100")
    with rows.cloud(broker, nodes=20) as made:
        command = [sys.executable, path, "--endpoint", made.endpoints.compute_url]
        command += ["--token", "admin:admin", "--flavor", NANO, "--image", IMAGE]
        command += ["--count", str(count), "--concurrency", "10"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    row.figures.update(
        {
            "boots/s": answer["boot"]["boots_per_s"],
            "POST p50 ms": answer["boot"]["post_ms"]["p50"],
            "list ms": answer["read"]["list_ms"]["p50"],
            "show ms": answer["read"]["show_ms"]["p50"],
            "deletes/s": answer["delete"]["deletes_per_s"],
        }
    )
    return [row]


MEASURES = {
    "rates": rows.rates,
    "singly": lambda broker, _count: rows.singly(broker),
    "reads": lambda broker, _count: rows.reads(broker),
    "starting": lambda broker, _count: rows.starting(broker),
    "neighbours": rows.neighbours,
    "core": _core,
    "loadgen": _loadgen,
}

if __name__ == "__main__":
    main()
