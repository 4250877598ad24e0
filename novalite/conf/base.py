# SPDX-License-Identifier: Apache-2.0
"""[DEFAULT] options that every program reads."""

import socket

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "concurrency_backend",
        default="auto",
        choices=["auto", "eventlet", "threading"],
        help="Green threads (eventlet) or native ones. `auto` is the one that the project's "
        "benchmark found better. Read before everything else, so it must stand in a file named "
        "by --config-file or --config-dir; the environment variable "
        "NOVALITE_CONCURRENCY_BACKEND wins over it.",
    ),
    cfg.HostAddressOpt(
        "my_ip", default="127.0.0.1", help="Address of this host as the API shows it (host_ip)."
    ),
    cfg.StrOpt(
        "host",
        default=socket.gethostname(),
        sample_default="<current_hostname>",
        help="Name of this host on the bus and in the services table. Not a host name that must "
        "resolve, but it has to be the same at every start.",
    ),
    cfg.StrOpt(
        "state_path",
        default="/var/lib/novalite",
        help="Directory for what must survive a restart: the node identity of a compute, the "
        "domains of the fake hypervisor, the default SQLite file.",
    ),
    cfg.StrOpt(
        "health_socket",
        help="Unix socket on which the process answers GET /healthz, for monitors on this machine. "
        "Unset: PROGRAM-HOST.sock in state_path.",
    ),
    cfg.IntOpt(
        "service_down_time",
        default=60,
        min=1,
        mutable=True,
        help="Seconds after the last report until a service counts as down. Must be greater than "
        "report_interval; at least four times as much is advised, since a compute fences itself "
        "one report_interval earlier.",
    ),
    cfg.IntOpt(
        "report_interval",
        default=10,
        min=1,
        mutable=True,
        help="Seconds between two reports of a service.",
    ),
    cfg.IntOpt(
        "graceful_shutdown_timeout",
        default=60,
        min=0,
        mutable=True,
        help="Seconds that SIGTERM leaves to running work before the process exits.",
    ),
    cfg.IntOpt(
        "long_rpc_timeout",
        default=1800,
        min=1,
        mutable=True,
        help="Seconds a call may take whose server shows that it is alive and working.",
    ),
    cfg.StrOpt(
        "default_availability_zone",
        default="nova",
        mutable=True,
        help="Zone of a compute host that no aggregate puts into another one.",
    ),
    cfg.StrOpt(
        "internal_service_availability_zone",
        default="internal",
        mutable=True,
        help="Zone shown for services that are not computes.",
    ),
    cfg.StrOpt(
        "default_schedule_zone",
        mutable=True,
        help="Zone for servers that name none. Unset: any zone.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("DEFAULT", OPTS)]
