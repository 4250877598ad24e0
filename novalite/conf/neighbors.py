# SPDX-License-Identifier: Apache-2.0
"""Options of [neighbors]: the stand-ins for identity, image, network and block storage."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt("listen", default="127.0.0.1", help="Address to listen on."),
    cfg.PortOpt("identity_port", default=5000, help="Port of identity v3."),
    cfg.PortOpt("image_port", default=9292, help="Port of image v2."),
    cfg.PortOpt("network_port", default=9696, help="Port of network v2.0."),
    cfg.PortOpt("volume_port", default=8776, help="Port of block storage v3."),
    cfg.FloatOpt(
        "volume_create_time",
        default=0.0,
        min=0.0,
        help="Seconds for which a new volume shows the state creating.",
    ),
    cfg.StrOpt(
        "database",
        help="SQLite file of the neighbours. Unset: neighbors.db in state_path.",
    ),
    cfg.StrOpt("region", default="RegionOne", help="Region of the catalogue."),
    cfg.StrOpt(
        "compute_endpoint",
        default="http://127.0.0.1:8774/v2.1",
        help="URL of the Compute API for the catalogue.",
    ),
    cfg.StrOpt(
        "admin_password",
        secret=True,
        help="Password of the user admin, set when the file is made. Must be given.",
    ),
    cfg.StrOpt(
        "service_password",
        secret=True,
        help="Password of the user nova (project service), set when the file is made.",
    ),
    cfg.StrOpt(
        "demo_password",
        secret=True,
        help="Password of the user demo, set when the file is made. Unset: that of admin.",
    ),
    cfg.IntOpt("token_expiration", default=3600, min=1, help="Seconds for which a token is valid."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="neighbors")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("neighbors", OPTS)]
