# SPDX-License-Identifier: Apache-2.0
"""What the API asks a scheduler for administrators: why not this host, how many more fit.

Called by the resources. It makes the request that the scheduler looks at; nothing is stored and
nothing is selected for it.
"""

from typing import Any

from novalite import context as context_module
from novalite import exception
from novalite.api import server_request
from novalite.api.parts import Parts
from novalite.db import explanations, flavors
from novalite.objects.flavor import Flavor
from novalite.objects.inquiry import CapacityReport, Examination
from novalite.objects.request_spec import ImageMeta, RequestSpec


def why_not(
    parts: Parts, context: context_module.RequestContext, server_id: str, host: str | None
) -> Examination:
    """Return what all filters say now of one host, or of all, for a server's request.

    :raises exception.InstanceNotFound: its request is not kept any more
    :raises exception.HostInBodyNotFound: there is no such host
    :raises exception.BusUnavailable: no scheduler answers
    """
    spec = parts.database.read(lambda conn: explanations.request(conn, server_id))
    found = parts.schedulers.examine_hosts(
        context,
        spec=spec,
        hosts=[] if host is None else [host],
        timeout=float(parts.conf.rpc_response_timeout),
    )
    if found.unknown:
        raise exception.HostInBodyNotFound(host=found.unknown[0])
    return found


def capacity(
    parts: Parts, context: context_module.RequestContext, asked: dict[str, Any]
) -> tuple[Flavor, CapacityReport]:
    """Return the flavor, and how many servers of it more fit each host.

    :param asked: a body that fits its schema, unwrapped
    :raises exception.FlavorInBodyNotFound: there is no such flavor
    :raises exception.ImageInBodyNotFound: there is no such image
    :raises exception.HostInBodyNotFound: there is no such host
    :raises exception.BusUnavailable: no scheduler answers
    """
    flavor = _flavor(parts, str(asked["flavorRef"]))
    image = ImageMeta()
    if asked.get("imageRef"):
        image = parts.images.get(context, asked["imageRef"])
    spec = RequestSpec(
        instance_uuid="",
        project_id=context.project_id or "",
        user_id=context.user_id or "",
        flavor=flavor,
        image=image,
        volume_backed=server_request.truth("volume_backed", asked.get("volume_backed")),
        availability_zone=asked.get("availability_zone", parts.conf.default_schedule_zone),
    )
    report = parts.schedulers.count_capacity(
        context,
        spec=spec,
        hosts=list(asked.get("hosts", ())),
        timeout=float(parts.conf.rpc_response_timeout),
    )
    if report.unknown:
        raise exception.HostInBodyNotFound(host=report.unknown[0])
    return flavor, report


def _flavor(parts: Parts, flavor_id: str) -> Flavor:
    try:
        return parts.database.read(lambda conn: flavors.get(conn, flavor_id, None))
    except exception.FlavorNotFound as error:
        raise exception.FlavorInBodyNotFound(flavor_id=flavor_id) from error
