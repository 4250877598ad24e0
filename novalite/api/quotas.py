# SPDX-License-Identifier: Apache-2.0
"""Limits as the resources ask for them: what the options say, and whether metadata fits.

Called by the resources and by :mod:`novalite.api.operations`. Options are read at every question,
so a reload holds from the next request on.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from oslo_config import cfg

from novalite import context as context_module
from novalite import exception
from novalite.api import microversion
from novalite.api.server_request import ServerRequest
from novalite.db import quota_limits, quotas
from novalite.objects.flavor import Flavor

# The resource is named as in the API, its option as in nova.conf.
_OPTION = {"injected_file_path_bytes": "injected_file_path_length"}
# What /os-quota-sets and /os-quota-class-sets show.
_FILES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
_GROUPS = ("server_groups", "server_group_members")
_ALL = (*quota_limits.RESOURCES, *quota_limits.NETWORK)
_WITHOUT_FILES = tuple(name for name in quota_limits.RESOURCES if name not in _FILES)
IN_SETS = microversion.Ranges((1, _ALL), (36, quota_limits.RESOURCES), (57, _WITHOUT_FILES))
IN_CLASSES = microversion.Ranges(
    (1, tuple(name for name in _ALL if name not in _GROUPS)),
    (50, quota_limits.RESOURCES),
    (57, _WITHOUT_FILES),
)


def options(conf: cfg.ConfigOpts) -> quota_limits.LimitsOf:
    """Return the function from a resource to its limit in [quota]."""

    def limit(resource: str) -> int:
        return int(conf.quota[_OPTION.get(resource, resource)])

    return limit


def batch(request: ServerRequest, flavor: Flavor) -> quotas.Batch:
    """Return what a request for servers takes of the quotas."""
    return quotas.Batch(
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        least=request.least,
        most=request.count,
        metadata_items=len(request.metadata),
    )


def admit(
    conf: cfg.ConfigOpts,
    conn: sa.Connection,
    context: context_module.RequestContext,
    wanted: quotas.Batch,
    *,
    limited: bool,
) -> int:
    """Return how many of these servers the caller may have; the first call of a transaction.

    :param limited: whether limits were set in the database for the caller's project
    :raises exception.OverQuota: not even the least number fits
    """
    project, user = str(context.project_id), str(context.user_id or "")
    return quotas.admit(conn, options(conf), project, user, wanted, has_limits=limited)


def check_settable(
    found: quota_limits.Limits,
    sums: Mapping[str, int],
    used: Mapping[str, int],
    asked: Mapping[str, int],
    *,
    of_user: bool,
) -> None:
    """Refuse limits that cannot be kept: below what is in use or was given to users, or for a user
    above what the project has left.

    :param sums: what the (other) users of the project were given of each resource in all
    :param used: what is in use by the project, or by the user
    :param asked: the limits to be set
    :raises exception.InvalidInput: naming limit, resource and bound
    """
    for resource, limit in asked.items():
        least = used.get(resource, 0)
        if not of_user:
            least = max(least, sums.get(resource, 0))
        if 0 <= limit < least:
            raise exception.InvalidInput(
                f"Quota limit {limit} for {resource} must be greater than or equal to already used "
                f"and reserved {least}."
            )
        most = found.project[resource]
        if not of_user or most < 0:
            continue
        left = max(most - sums.get(resource, 0), 0)
        if limit > left or limit < 0:
            raise exception.InvalidInput(
                f"Quota limit {limit} for {resource} must be less than or equal to {left}."
            )
