# SPDX-License-Identifier: Apache-2.0
"""What the fake hypervisor says of itself and makes of the XML it is given: pure functions.

Only ``fakelibvirt`` calls them.
"""

from dataclasses import dataclass
from typing import Any

from lxml import etree

ARCH = "x86_64"
QEMU_VERSION = 8_002_002
LIBVIRT_VERSION = 10_000_000

# Names libvirt has in its map of x86 CPUs.
CPU_MODELS = (
    "qemu64",
    "kvm64",
    "Conroe",
    "Penryn",
    "Nehalem",
    "Nehalem-IBRS",
    "Westmere",
    "Westmere-IBRS",
    "SandyBridge",
    "SandyBridge-IBRS",
    "IvyBridge",
    "IvyBridge-IBRS",
    "Haswell",
    "Haswell-IBRS",
    "Haswell-noTSX",
    "Haswell-noTSX-IBRS",
    "Broadwell",
    "Broadwell-IBRS",
    "Broadwell-noTSX",
    "Broadwell-noTSX-IBRS",
    "Skylake-Client",
    "Skylake-Server",
    "Cascadelake-Server",
    "Icelake-Server",
    "Opteron_G3",
    "Opteron_G4",
    "Opteron_G5",
    "EPYC",
    "EPYC-IBPB",
    "EPYC-Rome",
    "EPYC-Milan",
)
_HOST_MODEL = "Skylake-Server"
_HOST_FEATURES = ("hypervisor", "md-clear", "pcid", "ssbd", "vmx", "xsaves")
_GUESTS = (("x86_64", ("kvm", "qemu")), ("i686", ("qemu",)))


def capabilities(node: str, vcpus: int) -> str:
    """Return the capabilities of a host with so many threads."""
    root = etree.Element("capabilities")
    host = etree.SubElement(root, "host")
    cpu = etree.SubElement(host, "cpu")
    etree.SubElement(cpu, "arch").text = ARCH
    etree.SubElement(cpu, "model").text = _HOST_MODEL
    etree.SubElement(cpu, "vendor").text = "Intel"
    etree.SubElement(cpu, "topology", sockets="1", cores=str(vcpus), threads="1")
    for name in _HOST_FEATURES:
        etree.SubElement(cpu, "feature", name=name)
    etree.SubElement(etree.SubElement(host, "topology"), "cells", num="1")
    for arch, kinds in _GUESTS:
        guest = etree.SubElement(root, "guest")
        etree.SubElement(guest, "os_type").text = "hvm"
        element = etree.SubElement(guest, "arch", name=arch)
        for kind in kinds:
            etree.SubElement(element, "domain", type=kind)
    return str(etree.tostring(root, encoding="unicode"))


@dataclass(frozen=True, slots=True)
class ParsedDomain:
    """A definition taken apart: ``xml`` is without the metadata, which is kept by namespace."""

    uuid: str
    name: str
    metadata: dict[str, str]
    xml: str


def parse_domain(xml: str) -> ParsedDomain:
    """Read the definition of a domain.

    :raises lxml.etree.XMLSyntaxError: it is no XML
    :raises ValueError: name or uuid is missing
    """
    root = etree.fromstring(xml)
    uuid, name = root.findtext("uuid"), root.findtext("name")
    if not uuid or not name:
        raise ValueError("a domain needs a name and a uuid")
    kept: dict[str, str] = {}
    element = root.find("metadata")
    if element is not None:
        for child in element:
            namespace = etree.QName(child).namespace
            if namespace:
                kept[namespace] = str(etree.tostring(child, encoding="unicode", with_tail=False))
        root.remove(element)
    return ParsedDomain(uuid, name, kept, str(etree.tostring(root, encoding="unicode")))


def describe_domain(xml: str, metadata: dict[str, str], *, running: bool) -> str:
    """Return the definition as libvirt dumps it.

    The metadata are put back, a host-model CPU gets the model element with fallback='allow', and
    a domain with a process is shown with an id.
    """
    root = etree.fromstring(xml)
    if metadata:
        element = etree.Element("metadata")
        for text in metadata.values():
            element.append(etree.fromstring(text))
        root.insert(2, element)
    _complete_cpu(root.find("cpu"))
    if running:
        root.set("id", "1")
    return str(etree.tostring(root, encoding="unicode"))


def _complete_cpu(cpu: Any) -> None:
    if cpu is not None and cpu.get("mode") == "host-model" and cpu.find("model") is None:
        cpu.insert(0, etree.Element("model", fallback="allow"))


def missing_features(xml: str, lacking: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a domain's CPU needs of the features that the host lacks.

    host-model is a model by name, which has them all; custom needs those it requires; any other
    mode takes what there is.
    """
    cpu = etree.fromstring(xml).find("cpu")
    if cpu is None:
        return ()
    if cpu.get("mode") == "host-model":
        return lacking
    wanted = {
        each.get("name") for each in cpu.findall("feature") if each.get("policy") != "disable"
    }
    return tuple(name for name in lacking if name in wanted)


def parse_pool(xml: str) -> tuple[str, str]:
    """Return name and path of a pool."""
    root = etree.fromstring(xml)
    return root.findtext("name") or "", root.findtext("target/path") or ""


def parse_volume(xml: str) -> tuple[str, int]:
    """Return name and size in bytes of a volume."""
    root = etree.fromstring(xml)
    return root.findtext("name") or "", int(root.findtext("capacity") or 0)


_BOOT = """\
SeaBIOS (version 1.16.2)
Booting from Hard Disk...
[    0.000000] Linux version 6.1.0-fake (build@novalite) #1 SMP
[    0.000000] Command line: root=LABEL=root ro console=ttyS0
[    0.000000] DMI: novalite fake guest {name}
[    0.004000] smbios: system uuid {uuid}
[    0.210000] virtio_blk virtio1: [vda] attached
[    0.260000] virtio_net virtio0 eth0: link up
[    0.470000] EXT4-fs (vda1): mounted filesystem with ordered data mode
[    0.630000] random: crng init done
[    0.900000] cloud-init: datasource found
[    1.100000] cloud-init: finished
This guest only plays: no CPU runs behind it.

{name} login:
"""


def boot_lines(name: str, uuid: str) -> str:
    """Return what a guest writes to its console when it starts."""
    return _BOOT.format(name=name, uuid=uuid)
