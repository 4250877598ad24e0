# SPDX-License-Identifier: Apache-2.0
"""Options of novalite-api: [api] and its listening socket in [DEFAULT]."""

from oslo_config import cfg

LISTEN_OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt(
        "osapi_compute_listen",
        default="127.0.0.1",
        help="Address the Compute API listens on. Loopback unless you say otherwise.",
    ),
    cfg.PortOpt("osapi_compute_listen_port", default=8774, help="Port of the Compute API."),
    cfg.IntOpt(
        "osapi_compute_workers",
        default=1,
        min=1,
        help="Processes that serve the Compute API. 1: one process without a parent.",
    ),
]
OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=["keystone", "noauth2"],
        help="keystone: tokens are validated by keystonemiddleware ([keystone_authtoken]). "
        "noauth2: for tests and benchmarks only; the token USER:PROJECT is believed as it is.",
    ),
    cfg.IntOpt(
        "max_limit",
        default=1000,
        min=1,
        mutable=True,
        help="Most items in one page of a list.",
        deprecated_group="DEFAULT",
        deprecated_name="osapi_max_limit",
    ),
    cfg.StrOpt(
        "compute_link_prefix",
        mutable=True,
        help="Base URL for links in answers when a proxy stands in front; unset: from the request.",
    ),
    cfg.BoolOpt(
        "enable_instance_password",
        default=True,
        mutable=True,
        help="Return adminPass in the answer to a create.",
    ),
    cfg.IntOpt(
        "max_concurrent_requests",
        default=100,
        min=1,
        help="Most requests handled at one time by one API process.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=114688,
        min=1024,
        mutable=True,
        help="Most bytes in the body of a request; more is answered with 413.",
        deprecated_group="DEFAULT",
        deprecated_name="osapi_max_request_body_size",
    ),
    cfg.IntOpt(
        "client_socket_timeout",
        default=60,
        min=1,
        help="Seconds after which a connection is closed on which nothing comes or goes.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(LISTEN_OPTS)
    conf.register_opts(OPTS, group="api")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("DEFAULT", LISTEN_OPTS), ("api", OPTS)]
