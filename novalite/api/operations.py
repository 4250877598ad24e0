# SPDX-License-Identifier: Apache-2.0
"""What the API does to servers: create (step 1 of the boot map), change, delete.

Called by the resources. Each is one transaction, then a wake-up that nobody waits for: with the
bus down the answer is the same, and recovery drives the row. Neighbours are asked before the
transaction, never inside.
"""

import secrets
import string
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from novalite import context as context_module
from novalite import exception, log
from novalite.api import block_devices, destinations, server_request, zones
from novalite.api import quotas as api_quotas
from novalite.api.parts import Parts
from novalite.db import (
    builds,
    deletes,
    flavors,
    instance_queries,
    key_pairs,
    quotas,
    server_groups,
)
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance
from novalite.objects.request_spec import ImageMeta, RequestSpec

LOG = log.get(__name__)

_RESERVATION_LETTERS = string.ascii_lowercase + string.digits
# A build or a finish that commits between our read and our write makes a delete look again.
_DELETE_TRIES = 5

Context = context_module.RequestContext


@dataclass(frozen=True, slots=True)
class _Origin:
    """What the servers of one request are known by, the same however often they are stored."""

    uuids: list[str]
    moment: float = field(default_factory=time.time)
    reservation_id: str = field(
        default_factory=lambda: (
            "r-" + "".join(secrets.choice(_RESERVATION_LETTERS) for _ in range(8))
        )
    )


def create_servers(
    parts: Parts, context: Context, request: server_request.ServerRequest
) -> list[Instance]:
    """Accept new servers: rows for server, request and open action, then wake a conductor.

    :raises exception.Invalid: flavor, image, volume, network, security group, key pair, server
        group or zone cannot be had
    :raises exception.PolicyNotAuthorized: a forced host is for administrators
    :raises exception.OverQuota: not even min_count of them fit into the quotas of project and user
    """
    if not context.project_id:
        raise exception.Forbidden("A server needs a project; the token is for none.")
    if request.zone.forced:
        parts.policy.check(context, "servers:create:forced_host")
    zones.check(parts.conf, parts.database, request.zone)
    destinations.check(parts, context, request)
    flavor, limited = _flavor(parts, context, request.flavor_id)
    _check_key_pair(parts, context, request.key_name)
    _check_group(parts, context, request.hints.get("group"))
    image = block_devices.prepare(parts, context, request.disks, flavor)
    parts.networks.security_groups(context, request.security_groups)
    request.networks = parts.networks.validate(context, request.networks, request.count)
    origin = _Origin([str(uuid.uuid4()) for _ in range(request.count)])
    batch = api_quotas.batch(request, flavor)
    accepted: list[tuple[Instance, RequestSpec]] = []

    def work(conn: sa.Connection) -> None:
        # First of all, since it takes the lock under which the quotas of a project are counted.
        count = api_quotas.admit(parts.conf, conn, context, batch, limited=limited)
        accepted[:] = _instances(context, request, flavor, image, origin, count)
        _join_group(conn, parts, context, request.hints.get("group"), accepted)
        builds.create(conn, context, accepted, grace=float(parts.conf.conductor.pending_grace))

    _commit(parts, work, lambda conn: instance_queries.exists(conn, origin.uuids[0]))
    for instance, _spec in accepted:
        LOG.info("step=1 accepted for building", context=context, instance=instance.uuid)
    parts.wakeup.run_reservation(context, origin.reservation_id)
    return [instance for instance, _spec in accepted]


def _commit(
    parts: Parts,
    work: Callable[[sa.Connection], Any],
    happened: Callable[[sa.Connection], bool],
) -> None:
    """Run a transaction; when its end is unknown, look for its effect before answering."""
    try:
        parts.database.transaction(work)
    except exception.DatabaseUnavailable:
        if not parts.database.read(happened):
            raise


def _flavor(parts: Parts, context: Context, flavor_id: str) -> tuple[Flavor, bool]:
    """Return the flavor, and whether limits were set in the database for the project."""
    owner, private = str(context.project_id), not context.is_admin
    try:
        flavor, limited = parts.database.read(
            lambda conn: flavors.get_for_server(conn, flavor_id, owner, check_access=private)
        )
    except exception.FlavorNotFound as error:
        raise exception.FlavorInBodyNotFound(flavor_id=flavor_id) from error
    if flavor.disabled:
        raise exception.FlavorInBodyNotFound(flavor_id=flavor_id)
    return flavor, limited


def _check_key_pair(parts: Parts, context: Context, name: str | None) -> None:
    """Refuse a key pair that the user does not have; the server keeps the name alone."""
    if name is None:
        return
    try:
        parts.database.read(lambda conn: key_pairs.get(conn, str(context.user_id or ""), name))
    except exception.KeypairNotFound as error:
        raise exception.InvalidInput("Invalid key_name provided.") from error


def _check_group(parts: Parts, context: Context, group: str | None) -> None:
    """Refuse a group that the project does not have, before anything is counted in it."""
    if group is None:
        return
    project = str(context.project_id)
    try:
        parts.database.read(lambda conn: server_groups.get(conn, group, project))
    except exception.InstanceGroupNotFound as error:
        raise exception.InstanceGroupInBodyNotFound(group_uuid=group) from error


def _join_group(
    conn: sa.Connection,
    parts: Parts,
    context: Context,
    group: str | None,
    wanted: list[tuple[Instance, RequestSpec]],
) -> None:
    """Put the new servers into the group of the scheduler hint."""
    if group is None:
        return
    project, uuids = str(context.project_id), [instance.uuid for instance, _spec in wanted]
    quotas.enforce(
        conn,
        api_quotas.options(parts.conf),
        project,
        str(context.user_id or ""),
        {"server_group_members": len(uuids)},
        group_uuid=group,
    )
    server_groups.join(conn, group, project, uuids)


def _instances(
    context: Context,
    request: server_request.ServerRequest,
    flavor: Flavor,
    image: ImageMeta,
    origin: _Origin,
    count: int,
) -> list[tuple[Instance, RequestSpec]]:
    names = server_request.names(request.name, count)
    return [
        _instance(context, request, flavor, image, origin, index, name)
        for index, name in enumerate(names)
    ]


def _instance(
    context: Context,
    request: server_request.ServerRequest,
    flavor: Flavor,
    image: ImageMeta,
    origin: _Origin,
    index: int,
    name: str,
) -> tuple[Instance, RequestSpec]:
    key, disks = origin.uuids[index], request.disks
    instance = Instance(
        uuid=key,
        project_id=str(context.project_id),
        user_id=str(context.user_id or ""),
        display_name=name,
        display_description=request.description,
        hostname=server_request.hostname(name, key),
        flavor=flavor,
        availability_zone=request.zone.zone,
        image_ref="" if disks.volume_backed else image.id or disks.image_id,
        key_name=request.key_name,
        user_data=request.user_data,
        config_drive=request.config_drive,
        reservation_id=origin.reservation_id,
        launch_index=index,
        access_ip_v4=request.access_ip_v4,
        access_ip_v6=request.access_ip_v6,
        disk_config=request.disk_config,
        metadata=request.metadata,
        tags=request.tags,
        trusted_certs=request.trusted_certs,
        block_devices=disks.devices,
        security_groups=request.security_groups,
        created_at=origin.moment,
        updated_at=origin.moment,
    )
    spec = RequestSpec(
        instance_uuid=key,
        project_id=instance.project_id,
        user_id=instance.user_id,
        flavor=flavor,
        image=image,
        volume_backed=disks.volume_backed,
        availability_zone=request.zone.zone,
        force_host=request.zone.host,
        force_node=request.zone.node,
        requested_host=request.host,
        requested_node=request.hypervisor_hostname,
        scheduler_hints=request.hints,
        networks=request.networks,
        security_groups=request.security_groups,
    )
    return instance, spec


def delete_server(parts: Parts, context: Context, server_id: str, *, force: bool = False) -> None:
    """Accept the delete of a server; a build that has no host yet ends here and now.

    :raises exception.InstanceNotFound: it is gone already
    :raises exception.InstanceActionOpen: others keep changing it
    """
    lease = float(parts.conf.conductor.begin_timeout)

    def work(conn: sa.Connection) -> deletes.Opened:
        return deletes.open_delete(conn, context, server_id, lease=lease, force=force)

    opened = None
    for attempt in range(_DELETE_TRIES):
        try:
            opened = parts.database.transaction(work)
            break
        except exception.InstanceActionOpen:
            if attempt == _DELETE_TRIES - 1:
                raise
        except exception.DatabaseUnavailable:
            if not parts.database.read(lambda conn: _delete_is_open(conn, server_id)):
                raise
            return
    if opened is None:
        return
    what = "Deleted" if opened.closed else "Accepted for deleting"
    LOG.info("%s", what, context=context, instance=server_id)
    if opened.request is not None and opened.host:
        parts.wakeup.destroy(context, opened.host, opened.request)


def _delete_is_open(conn: sa.Connection, server_id: str) -> bool:
    row = instance_queries.get_row(conn, server_id, read_deleted=True)
    return bool(row.deleted or row.task_state == "deleting")


def update_server(parts: Parts, server_id: str, values: dict[str, Any]) -> None:
    """Change what PUT may change of a server.

    :raises exception.InstanceNotFound: it is gone
    """

    def happened(conn: sa.Connection) -> bool:
        row = instance_queries.get_row(conn, server_id)
        return all(getattr(row, name) == value for name, value in values.items())

    _commit(parts, lambda conn: instance_queries.update(conn, server_id, values), happened)
