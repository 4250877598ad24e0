# SPDX-License-Identifier: Apache-2.0
"""The XML and the options that shape it (V12, V13, V14)."""

import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from novalite import exception
from novalite.objects.block_device import BlockDevice
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance, NetworkInfo
from novalite.virt.driver import GuestMetadata
from novalite.virt.libvirt import config

NOVA = f"{{{config.NOVA_NS}}}"
MODEL = "Haswell-noTSX"
HOST_MODEL = config.CpuPolicy("kvm", "host-model")


def policy(make_conf, **options):
    return config.cpu_policy(make_conf(**{f"libvirt__{k}": v for k, v in options.items()}).libvirt)


def domain(instance, *, cpu=HOST_MODEL, networks=(), disks=(), metadata=None):
    text = config.domain_xml(
        instance,
        networks,
        metadata or GuestMetadata(7, 1),
        cpu=cpu,
        disks=disks,
        console_log="/state/console.log",
        now=1_500_000_000.0,
    )
    return etree.fromstring(text.encode("utf-8"), etree.XMLParser(recover=False))


def cpu_text(cpu, instance):
    element = domain(instance, cpu=cpu).find("cpu")
    return None if element is None else etree.tostring(element, encoding="unicode")


# V12


@pytest.mark.parametrize("mode", [None, "none", "host-model", "host-passthrough"])
def test_a_model_needs_custom(make_conf, mode):
    with pytest.raises(exception.ConfigurationError) as caught:
        policy(make_conf, cpu_mode=mode, cpu_models=[MODEL])
    text = caught.value.message()
    assert "cpu_mode" in text and "cpu_models" in text and "\n" not in text


@pytest.mark.parametrize("models", [[], ["", "  "]])
def test_custom_needs_a_model(make_conf, models):
    with pytest.raises(exception.ConfigurationError) as caught:
        policy(make_conf, cpu_mode="custom", cpu_models=models)
    assert "cpu_mode" in caught.value.message() and "cpu_models" in caught.value.message()


@pytest.mark.parametrize("mode", ["host-model", "host-passthrough", "custom"])
@pytest.mark.parametrize("virt_type", ["lxc", "parallels"])
def test_a_mode_needs_kvm_or_qemu(make_conf, virt_type, mode):
    with pytest.raises(exception.ConfigurationError) as caught:
        policy(make_conf, virt_type=virt_type, cpu_mode=mode, cpu_models=[MODEL])
    assert "cpu_mode" in caught.value.message() and "virt_type" in caught.value.message()


@pytest.mark.parametrize("word", ["Custom", "hostmodel"])
def test_an_unknown_mode_is_refused_with_the_valid_ones(make_conf, word):
    with pytest.raises(ValueError) as caught:
        policy(make_conf, cpu_mode=word)
    assert "host-passthrough" in str(caught.value)


TOPOLOGY = '<topology sockets="1" cores="1" threads="1"/>'


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, f'<cpu mode="host-model" match="exact">{TOPOLOGY}</cpu>'),
        ({"virt_type": "qemu"}, f'<cpu mode="host-model" match="exact">{TOPOLOGY}</cpu>'),
        ({"cpu_mode": "host-model"}, f'<cpu mode="host-model" match="exact">{TOPOLOGY}</cpu>'),
        ({"cpu_mode": "host-passthrough"}, f'<cpu mode="host-passthrough">{TOPOLOGY}</cpu>'),
        ({"cpu_mode": "none"}, f'<cpu match="exact">{TOPOLOGY}</cpu>'),
        (
            {"cpu_mode": "custom", "cpu_models": [MODEL]},
            f'<cpu mode="custom" match="exact"><model>{MODEL}</model>{TOPOLOGY}</cpu>',
        ),
        ({"virt_type": "lxc"}, None),
        ({"virt_type": "lxc", "cpu_mode": "none"}, None),
    ],
)
def test_cpu_element(make_conf, make_instance, options, expected):
    assert cpu_text(policy(make_conf, **options), make_instance()) == expected


def test_topology_follows_the_flavor(make_instance):
    flavor = Flavor("2", "m1.big", 4, 64, 1)
    text = cpu_text(HOST_MODEL, make_instance(flavor=flavor))
    assert '<topology sockets="4" cores="1" threads="1"/>' in text


def test_the_first_model_that_the_hypervisor_knows_is_taken(make_conf):
    cpu = policy(make_conf, cpu_mode="custom", cpu_models=["Future", "haswell-notsx", "kvm64"])
    assert cpu.choose_model(["kvm64", MODEL]).models == (MODEL,)
    with pytest.raises(exception.ConfigurationError) as caught:
        cpu.choose_model(["Penryn"])
    assert "Future" in caught.value.message() and "Penryn" in caught.value.message()


# V13


def test_flags_are_lower_case_and_single(make_conf, make_instance):
    conf = make_conf(
        libvirt__cpu_mode="custom",
        libvirt__cpu_models=[MODEL],
        libvirt__cpu_model_extra_flags=["PCID", " Ssbd", "pcid", " ", ""],
    )
    element = domain(make_instance(), cpu=config.cpu_policy(conf.libvirt)).find("cpu")
    found = [(f.get("name"), f.get("policy")) for f in element.iterfind("feature")]
    assert found == [("pcid", "require"), ("ssbd", "require")]


@pytest.mark.parametrize("mode", ["host-passthrough", "none", "host-model"])
def test_flags_without_custom_are_ignored_with_a_warning(make_conf, caplog, mode):
    with caplog.at_level(logging.WARNING):
        cpu = policy(make_conf, cpu_mode=mode, cpu_model_extra_flags=["pcid"])
    assert cpu.flags == ()
    (record,) = caplog.records
    assert "cpu_model_extra_flags" in record.getMessage() and mode in record.getMessage()


# V14


@pytest.mark.parametrize(
    "name",
    [
        "Größe",
        "日本語サーバ",
        "a & b <c> \"d\" 'e'",
        "</name><uuid>x",
        "]]>",
        "smile \U0001f600",
        "<![CDATA[x]]>",
        "&lt;",
        "two  blanks",
    ],
)
def test_names_come_through_exactly(make_instance, name):
    instance = make_instance(display_name=name, id=1, flavor=Flavor("1", f"f & {name}", 1, 64, 1))
    root = domain(instance)
    assert root.findtext(f"metadata/{NOVA}instance/{NOVA}name") == name
    assert root.find(f"metadata/{NOVA}instance/{NOVA}flavor").get("name") == f"f & {name}"
    assert [element.text for element in root.iterfind("name")] == ["instance-00000001"]
    assert [element.text for element in root.iterfind("uuid")] == [instance.uuid]


@given(name=st.text(alphabet=st.characters(max_codepoint=sys.maxunicode)))
def test_no_name_breaks_the_document(name):
    instance = Instance("0f1e", "p", "u", name, Flavor("1", name, 1, 64, 1), id=1)
    root = domain(instance)
    assert root.findtext(f"metadata/{NOVA}instance/{NOVA}name") == config.clean(name)
    assert len(root.findall("name")) == len(root.findall("uuid")) == 1


def test_what_xml_cannot_carry_is_left_out():
    assert config.clean("a\x00b\x01\x1f\ud800\ufffec\t") == "abc\t"


# The rest of the document


def test_document(make_instance):
    flavor = Flavor("9", "m1.all", 2, 512, 20, ephemeral_gb=5, swap_mb=512)
    instance = make_instance(flavor=flavor)
    disks = [config.Disk("disk", 20 * config.GIB, "/state/disk"), config.Disk("b", 1, "/state/b")]
    port = NetworkInfo("0123456789abcdef", "net", "private", "fa:16:3e:00:00:01")
    other = NetworkInfo("f123456789abcdef", "net", "p", "fa:16:3e:00:00:02", vif_type="tap")
    root = domain(instance, disks=disks, networks=[port, other])
    assert root.get("type") == "kvm"
    assert (root.findtext("memory"), root.find("memory").get("unit")) == ("524288", "KiB")
    assert root.findtext("vcpu") == "2"
    assert root.findtext("os/type") == "hvm"
    assert root.find("clock").get("offset") == "utc"
    nova = root.find(f"metadata/{NOVA}instance")
    assert nova.findtext(f"{NOVA}creationTime") == "2017-07-14 02:40:00"
    sizes = {etree.QName(child).localname: child.text for child in nova.find(f"{NOVA}flavor")}
    expected = {"memory": "512", "disk": "20", "swap": "512", "ephemeral": "5", "vcpus": "2"}
    assert sizes == expected
    assert nova.find(f"{NOVA}owner/{NOVA}user").get("uuid") == instance.user_id
    assert nova.find(f"{NOVA}owner/{NOVA}project").get("uuid") == instance.project_id
    assert nova.find(f"{NOVA}root").get("uuid") == instance.image_ref
    assert [s.get("file") for s in root.iterfind("devices/disk/source")] == [
        "/state/disk",
        "/state/b",
    ]
    assert [t.get("dev") for t in root.iterfind("devices/disk/target")] == ["vda", "vdb"]
    interfaces = root.findall("devices/interface")
    assert [i.get("type") for i in interfaces] == ["bridge", "ethernet"]
    assert [i.find("mac").get("address")[-1] for i in interfaces] == ["1", "2"]
    assert {i.find("model").get("type") for i in interfaces} == {"virtio"}
    assert max(len(i.find("target").get("dev")) for i in interfaces) <= 15
    assert root.find("devices/serial/log").get("file") == "/state/console.log"


def test_a_server_from_a_volume_names_no_image(make_instance):
    root = domain(make_instance(image_ref=""))
    assert root.find(f"metadata/{NOVA}instance/{NOVA}root") is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [("disk", 2 * config.GIB), ("disk.eph0", 3 * config.GIB), ("disk.swap", 2**20)]),
        ({"image_ref": ""}, [("disk.eph0", 3 * config.GIB), ("disk.swap", 2**20)]),
    ],
)
def test_disk_sizes(make_instance, fields, expected):
    flavor = Flavor("1", "f", 1, 64, 2, ephemeral_gb=3, swap_mb=1)
    assert config.disk_sizes(make_instance(flavor=flavor, **fields), 99) == expected


def test_a_root_disk_of_no_size_is_as_large_as_its_image(make_instance):
    instance = make_instance(flavor=Flavor("1", "f", 1, 64, 0))
    assert config.disk_sizes(instance, 99) == [("disk", 99)]


@given(
    action=st.integers(0, 2**40),
    attempt=st.integers(0, 99),
    done=st.booleans(),
    fence=st.booleans(),
    token=st.text(alphabet="abcdef0123456789-<&\"'"),
)
def test_metadata_round_trip(action, attempt, done, fence, token):
    metadata = GuestMetadata(action, attempt, done, fence, token)
    assert config.parse_metadata(config.metadata_xml(metadata)) == metadata


def test_metadata_stands_in_a_namespace_of_its_own(make_instance):
    metadata = GuestMetadata(12, 3, token="abc")
    root = domain(make_instance(), metadata=metadata)
    (element,) = root.findall(f"metadata/{{{config.GUEST_NS}}}guest")
    assert config.parse_metadata(etree.tostring(element, encoding="unicode")) == metadata


@pytest.mark.parametrize("text", ["", "<guest", "<guest/>", '<guest action="x" attempt="1"/>'])
def test_unreadable_metadata_is_said(text):
    with pytest.raises(exception.HypervisorError):
        config.parse_metadata(text)


def test_parsed_metadata_is_not_shared():
    text = config.metadata_xml(GuestMetadata(1, 1))
    config.parse_metadata(text).done = True
    assert config.parse_metadata(text).done is False


# Volumes


def targets(root):
    return [
        (disk.get("type"), disk.find("target").get("dev"), disk.find("source").attrib.values()[0])
        for disk in root.iterfind("devices/disk")
    ]


def volume(name, index=None):
    return BlockDevice(
        "volume", volume_id=f"id-{name}", boot_index=index, device_name=f"/dev/{name}", path=name
    )


def test_a_guest_boots_from_its_root_volume(make_instance):
    instance = make_instance(
        image_ref="", block_devices=[volume("vdc"), volume("vda", 0), volume("vdd")]
    )
    root = domain(instance, disks=[config.Disk("disk.swap", 1, "/swap")])
    assert targets(root) == [
        ("block", "vda", "vda"),
        ("file", "vdb", "/swap"),
        ("block", "vdc", "vdc"),
        ("block", "vdd", "vdd"),
    ]
    assert root.find("devices/disk/serial").text == "id-vda"
    assert root.find("devices/disk/driver").get("type") == "raw"


def test_a_guest_with_an_image_has_its_volumes_behind_its_disks(make_instance):
    instance = make_instance(block_devices=[volume("vdc")])
    disks = [config.Disk("disk", 1, "/disk"), config.Disk("disk.swap", 1, "/swap")]
    assert [name for _kind, name, _source in targets(domain(instance, disks=disks))] == [
        "vda",
        "vdb",
        "vdc",
    ]
