# SPDX-License-Identifier: Apache-2.0
"""Options for the clients of the neighbours: [glance], [neutron] and [cinder]."""

from oslo_config import cfg

GLANCE_OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "endpoint_override", mutable=True, help="URL of image v2; unset: from the catalogue."
    ),
    cfg.FloatOpt(
        "timeout", default=20.0, min=0.1, mutable=True, help="Seconds a request may take."
    ),
    cfg.FloatOpt(
        "image_cache_time",
        default=60.0,
        min=0.0,
        mutable=True,
        help="Seconds for which the API remembers an active image that was looked up.",
    ),
]
NEUTRON_OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "endpoint_override",
        deprecated_name="url",
        mutable=True,
        help="URL of network v2.0; unset: from the catalogue.",
    ),
    cfg.FloatOpt(
        "timeout", default=20.0, min=0.1, mutable=True, help="Seconds a request may take."
    ),
    cfg.FloatOpt(
        "network_cache_time",
        default=60.0,
        min=0.0,
        mutable=True,
        help="Seconds for which a compute remembers the name of a network.",
    ),
]
CINDER_OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "catalog_info",
        default="volumev3::publicURL",
        regex=r"^\w[\w-]*:.*:.*$",
        mutable=True,
        help="How block storage is found in the catalogue: type, name (may be empty), interface.",
    ),
    cfg.StrOpt(
        "endpoint_template",
        mutable=True,
        help="URL of block storage v3 in place of the catalogue's, such as "
        "http://HOST:8776/v3/%(project_id)s.",
    ),
    cfg.StrOpt(
        "os_region_name",
        mutable=True,
        help="Region to look block storage up in. Unset: that of [service_user].",
    ),
    cfg.IntOpt(
        "http_retries",
        default=3,
        min=0,
        mutable=True,
        help="How often a request is sent again after a failed connection, if that does no harm.",
    ),
    cfg.FloatOpt(
        "timeout", default=20.0, min=0.1, mutable=True, help="Seconds a request may take."
    ),
]
SERVICE_USER_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("auth_url", help="URL of identity v3 for novalite's own account."),
    cfg.StrOpt("username", default="nova", help="Name of novalite's own account."),
    cfg.StrOpt("password", secret=True, help="Its password."),
    cfg.StrOpt("project_name", default="service", help="Its project."),
    cfg.StrOpt("user_domain_name", default="Default", help="Domain of the user."),
    cfg.StrOpt("project_domain_name", default="Default", help="Domain of the project."),
    cfg.StrOpt("region_name", default="RegionOne", help="Region to look endpoints up in."),
    cfg.StrOpt(
        "cafile",
        help="File with the certificates that https:// services are checked against. Unset: those "
        "of the system.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(GLANCE_OPTS, group="glance")
    conf.register_opts(NEUTRON_OPTS, group="neutron")
    conf.register_opts(CINDER_OPTS, group="cinder")
    conf.register_opts(SERVICE_USER_OPTS, group="service_user")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [
        ("cinder", CINDER_OPTS),
        ("glance", GLANCE_OPTS),
        ("neutron", NEUTRON_OPTS),
        ("service_user", SERVICE_USER_OPTS),
    ]
