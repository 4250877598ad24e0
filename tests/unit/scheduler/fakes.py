# SPDX-License-Identifier: Apache-2.0
"""Hosts and requests for the scheduler's tests, and the plainest possible scheduler."""

from novalite.objects import capacity
from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Generation, ImageMeta, RequestSpec
from novalite.objects.service import Service
from novalite.scheduler import filters, weights
from novalite.scheduler.host_state import HostState
from novalite.scheduler.pipeline import Pipeline

PLATFORMS = [["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"], ["i686", "qemu", "hvm"]]

# Multipliers of the weighers that plain_order knows.
ROOM = ("ram_weight_multiplier", "cpu_weight_multiplier", "disk_weight_multiplier")


def node(name="h1", *, host=None, counter=1, epoch=1, **changes):
    """The standard host of the field cases, empty."""
    values = {
        "uuid": f"uuid-of-{name}",
        "vcpus": 8,
        "memory_mb": 16384,
        "local_gb": 200,
        "memory_mb_used": 512,
        "supported_instances": PLATFORMS,
        "generation": Generation(epoch, counter),
    } | changes
    return ComputeNode(host=host or name, hypervisor_hostname=name, **values)


def service(host="h1", *, age=1.0, **changes):
    values = {"id": 1, "uuid": f"service-of-{host}", "binary": "nova-compute", "age": age}
    return Service(host=host, **(values | changes))


def host_state(name="h1", *, up=True, zone="nova", disabled=False, **changes):
    state = HostState(node(name, **changes), zone=zone)
    state.up, state.disabled = up, disabled
    return state


def spec(uuid="i1", *, vcpus=1, memory_mb=512, root_gb=1, properties=None, **changes):
    flavor = Flavor("f", "f", vcpus, memory_mb, root_gb)
    image = ImageMeta(properties=properties or {})
    return RequestSpec(uuid, "project", "user", flavor, image, **changes)


def pipeline(names=filters.DEFAULT, multipliers=None, **changes):
    if multipliers is None:
        multipliers = dict.fromkeys(ROOM, 1.0)
    return Pipeline(filters.load(list(names)), weights.load(multipliers), **changes)


def plain_order(hosts, request):
    """Host names best first, as a child would do it: no sums kept, no tricks, one host a time."""
    wanted = capacity.need(request.flavor, request.volume_backed)
    left = [host for host in hosts if _fits(host, request, wanted)]
    if len(left) < 2:
        return [host.node for host in left]
    columns = [
        [max(0, host.picture.memory_mb - host.picture.memory_mb_used) for host in left],
        [max(0, _free_vcpus(host.picture)) for host in left],
        [max(0, host.picture.local_gb - capacity.disk_used_gb(host.picture)) for host in left],
    ]
    totals = [sum((c[i] / max(c) if max(c) else 0) for c in columns) for i in range(len(left))]
    ranked = sorted(range(len(left)), key=lambda i: (-round(totals[i], 9), i))
    return [left[i].node for i in ranked]


def _free_vcpus(picture):
    return picture.vcpus * picture.cpu_allocation_ratio - picture.vcpus_used


def _fits(host, request, wanted):
    properties = request.image.properties
    return (
        host.up
        and not host.disabled
        and host.host not in request.ignore_hosts
        and request.availability_zone in (None, host.zone)
        and capacity.own_rooms(host.picture).fits(wanted)
        and (
            "hw_architecture" not in properties
            or any(s[0] == properties["hw_architecture"] for s in host.picture.supported_instances)
        )
    )
