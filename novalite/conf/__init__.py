# SPDX-License-Identifier: Apache-2.0
"""Options: one file a section. The one ConfigOpts used is ``cfg.CONF``.

oslo.messaging registers some of its groups on the global instance only, so an instance of our own
would fail at the first call. Only this package and ``cmd`` name it; everything else gets it passed.
"""

from oslo_config import cfg

from novalite.conf import (
    api,
    base,
    compute,
    conductor,
    database,
    fake_libvirt,
    libvirt,
    neighbors,
    quota,
    scheduler,
    services,
    testing,
    upgrade_levels,
)

CONF = cfg.CONF
SECTIONS = (
    base,
    api,
    compute,
    conductor,
    database,
    fake_libvirt,
    libvirt,
    neighbors,
    quota,
    scheduler,
    services,
    testing,
    upgrade_levels,
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of novalite on *conf*; doing it twice is harmless."""
    for section in SECTIONS:
        section.register_opts(conf)
