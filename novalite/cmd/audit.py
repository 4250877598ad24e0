# SPDX-License-Identifier: Apache-2.0
"""``novalite-manage audit``: connects to the bus, lets the advisor audit the cloud, and prints.

Called by ``cmd/manage.py``. Exit codes: 0 all books agree, 3 differences are left, 4 none is, but
not every host could be asked.
"""

import argparse
import json
import sys

from oslo_config import cfg

from novalite import exception
from novalite.advisor.audit import Auditor
from novalite.db import migrate
from novalite.db.engine import Database


def run(conf: cfg.ConfigOpts, database: Database, words: argparse.Namespace) -> None:
    """Print the audit; the exit code is not 0 if differences are left or hosts unasked."""
    # Imported here since all other commands do without the bus, which is slow to load.
    from novalite import broker, rpc
    from novalite.compute import rpcapi

    migrate.check(database)
    try:
        if not broker.handshake(conf):
            raise exception.BusUnavailable()
    except broker.Refused as error:
        raise exception.ConfigurationError(reason=f"transport_url: {error}") from error
    bus = rpc.Bus(conf)
    try:
        auditor = Auditor(database, rpcapi.ComputeAPI(bus), float(conf.service_down_time))
        report = auditor.run(repair=words.repair)
    finally:
        bus.close()
    if words.format == "json":
        print(json.dumps(report.as_dict(), indent=2))
    else:
        print("\n".join(report.lines()))
    sys.exit(report.code)
