# SPDX-License-Identifier: Apache-2.0
"""The XML that is handed to libvirt, and the [libvirt] options that shape it.

Pure: text out of objects. It is called by ``driver`` and ``host`` and never asks a hypervisor, a
clock or a file. lxml quotes everything that users can name, so no name can break or extend a
document.
"""

import functools
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lxml import etree

from novalite import exception
from novalite.objects import block_device
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance, NetworkInfo
from novalite.virt.driver import GuestMetadata

LOG = logging.getLogger(__name__)

NOVA_NS = "http://openstack.org/xmlns/libvirt/nova/1.1"
GUEST_NS = "urn:novalite:libvirt:guest:1.0"
GUEST_PREFIX = "novalite"
CPU_VIRT_TYPES = ("kvm", "qemu")
GIB = 1024**3
MIB = 1024**2

# What XML 1.0 cannot carry at all, quoted or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# How libvirt words a CPU that the host cannot give.
_CPU_REFUSED = re.compile(r"host CPU|CPU is incompatible|CPU are not compatible", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CpuPolicy:
    """The CPU that guests get. ``mode`` None: the domain has no cpu element at all."""

    virt_type: str
    mode: str | None
    models: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def blamed(self, text: str) -> str:
        """Return libvirt's *text*, with the option that asks for a CPU which it refuses."""
        if self.mode in (None, "none") or not _CPU_REFUSED.search(text):
            return text
        return f"{text} ([libvirt] cpu_mode = {self.mode} asks for them, cpu_mode = none does not)"

    def choose_model(self, known: Sequence[str]) -> "CpuPolicy":
        """Return the policy with the first of its models that the hypervisor knows.

        :param known: names of the hypervisor's models; compared without regard to case
        :raises ConfigurationError: none of them is known
        """
        if self.mode != "custom":
            return self
        names = {name.lower(): name for name in known}
        for model in self.models:
            if model.lower() in names:
                return replace(self, models=(names[model.lower()],))
        raise exception.ConfigurationError(
            f"[libvirt] cpu_models = {','.join(self.models)}: the hypervisor knows none of them; "
            f"it knows: {', '.join(known)}"
        )


def cpu_policy(options: Any) -> CpuPolicy:
    """Read the [libvirt] options.

    :param options: the group ``conf.libvirt``
    :raises ConfigurationError: they contradict each other; the text names both options
    """
    virt_type, mode = options.virt_type, options.cpu_mode
    models = tuple(dict.fromkeys(name.strip() for name in options.cpu_models if name.strip()))
    flags = _flags(options.cpu_model_extra_flags)
    has_cpu = virt_type in CPU_VIRT_TYPES
    if not has_cpu and mode not in (None, "none"):
        raise exception.ConfigurationError(
            f"[libvirt] cpu_mode = {mode} cannot be had with [libvirt] virt_type = {virt_type}; "
            f"allowed with virt_type: {', '.join(CPU_VIRT_TYPES)}"
        )
    effective = mode or ("host-model" if has_cpu else "none")
    if models and effective != "custom":
        raise exception.ConfigurationError(
            f"[libvirt] cpu_models = {','.join(models)} needs [libvirt] cpu_mode = custom, "
            f"but cpu_mode is {effective}"
        )
    if effective == "custom" and not models:
        raise exception.ConfigurationError(
            "[libvirt] cpu_mode = custom needs at least one name in [libvirt] cpu_models"
        )
    if flags and effective != "custom":
        LOG.warning(
            "[libvirt] cpu_model_extra_flags = %s is ignored: it takes effect with cpu_mode = "
            "custom only, and cpu_mode is %s",
            ",".join(flags),
            effective,
        )
        flags = ()
    return CpuPolicy(virt_type, effective if has_cpu else None, models, flags)


def _flags(names: Sequence[str]) -> tuple[str, ...]:
    """Lower case, since libvirt knows no other; without blanks, duplicates and empty ones."""
    return tuple(dict.fromkeys(name.strip().lower() for name in names if name.strip()))


@dataclass(frozen=True, slots=True)
class Disk:
    """One local disk of a guest; ``name`` is Nova's: disk, disk.eph0, disk.swap."""

    name: str
    size: int  # bytes that it may grow to
    path: str


def disk_sizes(instance: Instance, image_size: int) -> list[tuple[str, int]]:
    """Return name and virtual size in bytes of each local disk of the server.

    A server without an image boots from a volume and has no local root disk. A root disk of 0 GB
    is as large as its image.

    :param image_size: bytes of the image
    """
    flavor = instance.flavor
    sizes = []
    if instance.image_ref:
        sizes.append(("disk", flavor.root_gb * GIB or image_size))
    if flavor.ephemeral_gb:
        sizes.append(("disk.eph0", flavor.ephemeral_gb * GIB))
    if flavor.swap_mb:
        sizes.append(("disk.swap", flavor.swap_mb * MIB))
    return sizes


def domain_xml(
    instance: Instance,
    network_info: Sequence[NetworkInfo],
    metadata: GuestMetadata,
    *,
    cpu: CpuPolicy,
    disks: Sequence[Disk],
    console_log: str,
    now: float,
) -> str:
    """Return the definition of the guest.

    :param console_log: file for what the guest writes to its serial console
    :param now: the time of creation, seconds since the epoch
    """
    domain = etree.Element("domain", type=cpu.virt_type)
    _add(domain, "uuid", instance.uuid)
    _add(domain, "name", instance.name)
    _add(domain, "memory", str(instance.flavor.memory_mb * 1024), unit="KiB")
    _add(domain, "vcpu", str(instance.flavor.vcpus))
    element = _add(domain, "metadata")
    _add_nova_metadata(element, instance, now)
    element.append(_guest_element(metadata))
    _add_machine(domain, cpu, instance.flavor)
    devices = _add(domain, "devices")
    _add_disks(devices, disks, instance.block_devices)
    for network in network_info:
        _add_interface(devices, network)
    _add_console(devices, console_log)
    return str(etree.tostring(domain, encoding="unicode"))


def _add(parent: Any, tag: str, text: str | None = None, **attributes: str) -> Any:
    child = etree.SubElement(parent, tag, attributes)
    if text is not None:
        child.text = text
    return child


def clean(text: str) -> str:
    """Return *text* without the characters that XML cannot carry (control characters and such)."""
    return _NOT_XML.sub("", text)


def _add_nova_metadata(parent: Any, instance: Instance, now: float) -> None:
    nova = f"{{{NOVA_NS}}}"
    flavor = instance.flavor
    root = etree.SubElement(parent, nova + "instance", nsmap={"nova": NOVA_NS})
    _add(root, nova + "name", clean(instance.display_name))
    created = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
    _add(root, nova + "creationTime", created)
    size = _add(root, nova + "flavor", name=clean(flavor.name))
    _add(size, nova + "memory", str(flavor.memory_mb))
    _add(size, nova + "disk", str(flavor.root_gb))
    _add(size, nova + "swap", str(flavor.swap_mb))
    _add(size, nova + "ephemeral", str(flavor.ephemeral_gb))
    _add(size, nova + "vcpus", str(flavor.vcpus))
    owner = _add(root, nova + "owner")
    user, project = clean(instance.user_id), clean(instance.project_id)
    _add(owner, nova + "user", user, uuid=user)
    _add(owner, nova + "project", project, uuid=project)
    if instance.image_ref:
        _add(root, nova + "root", type="image", uuid=clean(instance.image_ref))


def _guest_element(metadata: GuestMetadata) -> Any:
    attributes = {
        "action": str(metadata.action_id),
        "attempt": str(metadata.attempt),
        "done": _yes_no(metadata.done),
        "pausedByFence": _yes_no(metadata.paused_by_fence),
        "token": clean(metadata.token),
    }
    return etree.Element(f"{{{GUEST_NS}}}guest", attributes, nsmap={GUEST_PREFIX: GUEST_NS})


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def metadata_xml(metadata: GuestMetadata) -> str:
    """Return the metadata as the element that is kept with the domain, under ``GUEST_NS``."""
    return str(etree.tostring(_guest_element(metadata), encoding="unicode"))


def parse_metadata(text: str) -> GuestMetadata:
    """Read what :func:`metadata_xml` wrote, whatever prefix libvirt has given it since.

    :raises HypervisorError: it is not ours
    """
    return GuestMetadata(*_parse_metadata(text))


@functools.lru_cache(maxsize=4096)
def _parse_metadata(text: str) -> tuple[int, int, bool, bool, str]:
    # Kept, because a listing of all guests reads the same texts every time.
    try:
        found = etree.fromstring(text).attrib
        return (
            int(found["action"]),
            int(found["attempt"]),
            found.get("done") == "yes",
            found.get("pausedByFence") == "yes",
            str(found.get("token", "")),
        )
    except (etree.XMLSyntaxError, KeyError, ValueError) as error:
        raise exception.HypervisorError(reason=f"unreadable guest metadata: {error!r}") from error


def _add_machine(domain: Any, cpu: CpuPolicy, flavor: Flavor) -> None:
    os_element = _add(domain, "os")
    _add(os_element, "type", "hvm")
    _add(os_element, "boot", dev="hd")
    features = _add(domain, "features")
    _add(features, "acpi")
    _add(features, "apic")
    _add_cpu(domain, cpu, flavor.vcpus)
    clock = _add(domain, "clock", offset="utc")
    _add(clock, "timer", name="pit", tickpolicy="delay")
    _add(clock, "timer", name="rtc", tickpolicy="catchup")
    _add(clock, "timer", name="hpet", present="no")


def _add_cpu(domain: Any, cpu: CpuPolicy, vcpus: int) -> None:
    if cpu.mode is None:
        return
    element = _add(domain, "cpu")
    if cpu.mode != "none":
        element.set("mode", cpu.mode)
    if cpu.mode != "host-passthrough":
        element.set("match", "exact")
    if cpu.mode == "custom":
        _add(element, "model", cpu.models[0])
    _add(element, "topology", sockets=str(vcpus), cores="1", threads="1")
    for flag in cpu.flags:
        _add(element, "feature", policy="require", name=flag)


def _add_disks(
    devices: Any, disks: Sequence[Disk], volumes: Sequence[block_device.BlockDevice]
) -> None:
    """Add local disks and volumes; the guest boots from the first of all."""
    first = 1 if any(volume.is_root for volume in volumes) else 0
    for disk, target in zip(disks, block_device.names(first, len(disks)), strict=True):
        element = _add(devices, "disk", type="file", device="disk")
        _add(element, "driver", name="qemu", type="qcow2", cache="none")
        _add(element, "source", file=disk.path)
        _add(element, "target", dev=target, bus="virtio")
    for volume in volumes:
        element = etree.Element("disk", type="block", device="disk")
        _add(element, "driver", name="qemu", type="raw", cache="none", io="native")
        _add(element, "source", dev=clean(volume.path))
        _add(element, "target", dev=volume.device_name.removeprefix("/dev/"), bus="virtio")
        _add(element, "serial", clean(volume.volume_id or ""))
        devices.insert(0 if volume.is_root else len(devices), element)


def _add_interface(devices: Any, network: NetworkInfo) -> None:
    kind = "bridge" if network.vif_type == "ovs" else "ethernet"
    element = _add(devices, "interface", type=kind)
    _add(element, "mac", address=network.mac_address)
    _add(element, "model", type="virtio")
    if kind == "bridge":
        _add(element, "source", bridge="br-int")
        port = _add(element, "virtualport", type="openvswitch")
        _add(port, "parameters", interfaceid=network.port_id)
    # 14 characters: the kernel allows 15 for the name of an interface.
    _add(element, "target", dev=f"tap{network.port_id[:11]}")


def _add_console(devices: Any, console_log: str) -> None:
    serial = _add(devices, "serial", type="pty")
    _add(serial, "log", file=console_log, append="off")
    _add(serial, "target", port="0")
    console = _add(devices, "console", type="pty")
    _add(console, "target", type="serial", port="0")


def pool_xml(name: str, path: str) -> str:
    """Return the definition of the directory in which the disks are kept."""
    pool = etree.Element("pool", type="dir")
    _add(pool, "name", name)
    _add(_add(pool, "target"), "path", path)
    return str(etree.tostring(pool, encoding="unicode"))


def volume_xml(name: str, size: int) -> str:
    """Return the definition of a thin disk that may grow to *size* bytes."""
    volume = etree.Element("volume")
    _add(volume, "name", name)
    _add(volume, "capacity", str(size), unit="bytes")
    _add(volume, "allocation", "0", unit="bytes")
    _add(_add(volume, "target"), "format", type="qcow2")
    return str(etree.tostring(volume, encoding="unicode"))
