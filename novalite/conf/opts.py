# SPDX-License-Identifier: Apache-2.0
"""All options, for oslo-config-generator (entry point ``novalite``)."""

from oslo_config import cfg

from novalite import conf


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return every section's options in the order of the sections."""
    merged: dict[str, list[cfg.Opt]] = {}
    for section in conf.SECTIONS:
        for group, opts in section.list_opts():
            merged.setdefault(group, []).extend(opts)
    return list(merged.items())
