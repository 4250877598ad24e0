# SPDX-License-Identifier: Apache-2.0
"""Limits as the resources ask for them: what the options say, and whether metadata fits.

Called by the resources and by :mod:`novalite.api.operations`. Options are read at every question,
so a reload holds from the next request on.
"""

from oslo_config import cfg

from novalite.db import quota_limits

# The resource is named as in the API, its option as in nova.conf.
_OPTION = {"injected_file_path_bytes": "injected_file_path_length"}


def options(conf: cfg.ConfigOpts) -> quota_limits.LimitsOf:
    """Return the function from a resource to its limit in [quota]."""

    def limit(resource: str) -> int:
        return int(conf.quota[_OPTION.get(resource, resource)])

    return limit
