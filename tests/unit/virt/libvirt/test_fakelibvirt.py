# SPDX-License-Identifier: Apache-2.0
"""The fake hypervisor: what it keeps, what it adds to a definition, how it refuses."""

import sqlite3
import subprocess
import sys
import textwrap

import pytest
from lxml import etree

from novalite.objects.states import PowerState
from novalite.virt.libvirt import fakelibvirt

SMALL = "<domain type='kvm'><name>{name}</name><uuid>{uuid}</uuid></domain>"


@pytest.fixture
def hypervisor(make_conf):
    found = fakelibvirt.FakeLibvirt(make_conf(), "host1")
    yield found
    found.close()


@pytest.fixture
def connection(hypervisor):
    return hypervisor.open("fake:///host1")


def refused(hypervisor, call, *args):
    with pytest.raises(hypervisor.libvirtError) as caught:
        call(*args)
    assert caught.value.get_error_message() == str(caught.value) != ""
    return caught.value.get_error_code()


def test_guests_survive_the_process(make_cloudlet, make_instance):
    before, instance = make_cloudlet(), make_instance()
    before.spawn(instance, done=True)
    before.driver.finish_spawn(instance)
    expected = before.driver.list_guests()
    before.hypervisor.close()
    after = make_cloudlet()
    assert after.driver.list_guests() == expected
    assert instance.uuid in after.driver.get_console_output(instance.uuid)
    after.driver.destroy(instance.uuid)
    assert after.driver.list_guests() == after.volumes() == []


KILLED = """
    import sys
    from oslo_config import cfg
    import novalite.conf
    from novalite import context
    from novalite.objects.flavor import Flavor
    from novalite.objects.instance import Instance
    from novalite.objects.request_spec import ImageMeta
    from novalite.virt import loader
    from novalite.virt.driver import GuestMetadata

    conf = cfg.ConfigOpts()
    novalite.conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("state_path", sys.argv[1])
    conf.set_override("spawn_delay", 60.0, "fake_libvirt")
    driver = loader.load_driver(conf, "host1")
    driver.init_host()
    asked = []

    def starting():
        asked.append(1)
        if len(asked) == int(sys.argv[2]):
            print("now", flush=True)
            sys.stdin.readline()
        return False

    instance = Instance("0f1e-uuid", "p", "u", "n", Flavor("1", "f", 1, 64, 1), id=1, image_ref="i")
    metadata = GuestMetadata(5, 2, token="abc")
    driver.spawn(context.service_context(), instance, ImageMeta(), [], metadata, starting)
"""


@pytest.mark.parametrize(("stage", "disks"), [(2, 0), (3, 1)])
def test_a_kill_in_the_midst_of_a_spawn_leaves_a_domain_that_can_be_found(
    make_cloudlet, tmp_path, stage, disks
):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), str(stage)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "now\n"
    finally:
        child.kill()
        child.communicate(timeout=30)
    cloudlet = make_cloudlet()
    (guest,) = cloudlet.driver.list_guests()
    assert (guest.instance_uuid, guest.power_state) == ("0f1e-uuid", PowerState.SHUTDOWN)
    assert (guest.metadata.action_id, guest.metadata.attempt) == (5, 2)
    assert len(cloudlet.volumes()) == disks
    cloudlet.driver.destroy(guest.instance_uuid)
    assert cloudlet.driver.list_guests() == cloudlet.volumes() == []
    assert cloudlet.driver.host_resources("host1").disk_available_least == 200


@pytest.mark.parametrize(
    ("mode", "added"), [("host-model", True), ("host-passthrough", False), ("none", False)]
)
def test_the_dump_shows_what_libvirt_makes_of_host_model(make_cloudlet, make_instance, mode, added):
    cloudlet, instance = make_cloudlet(libvirt__cpu_mode=mode), make_instance()
    cloudlet.spawn(instance)
    cpu = etree.fromstring(cloudlet.xml(instance)).find("cpu")
    children = [(child.tag, dict(child.attrib)) for child in cpu]
    topology = ("topology", {"sockets": "1", "cores": "1", "threads": "1"})
    assert children == ([("model", {"fallback": "allow"})] if added else []) + [topology]


def test_the_dump_has_the_metadata_as_they_are_now(make_cloudlet, make_instance):
    cloudlet, instance = make_cloudlet(), make_instance(display_name="a & <b>")
    cloudlet.spawn(instance, token="first")
    assert etree.fromstring(cloudlet.xml(instance)).get("id")
    connection = cloudlet.hypervisor.open("fake:///host1")
    domain = connection.lookupByUUIDString(instance.uuid)
    domain.setMetadata(2, "<x a='1'/>", "t", "urn:test", 2)
    root = etree.fromstring(cloudlet.xml(instance))
    assert len(root.findall("metadata/*")) == 3
    assert "a &amp; &lt;b&gt;" in cloudlet.xml(instance)
    assert domain.metadata(2, "urn:test", 2) == "<x a='1'/>"
    domain.setMetadata(2, None, None, "urn:test", 2)
    code = refused(cloudlet.hypervisor, domain.metadata, 2, "urn:test", 2)
    assert code == cloudlet.hypervisor.VIR_ERR_NO_DOMAIN_METADATA


def test_what_the_look_up_read_is_not_used_after_a_change(connection, hypervisor):
    connection.defineXML(SMALL.format(name="a", uuid="1"))
    domain = connection.lookupByUUIDString("1")
    domain.createWithFlags(0)
    assert domain.state() == [hypervisor.VIR_DOMAIN_RUNNING, 0]
    connection.lookupByUUIDString("1").suspend()
    assert domain.state() == [hypervisor.VIR_DOMAIN_PAUSED, 0]


def test_a_new_definition_keeps_the_state(connection, hypervisor):
    connection.defineXML(SMALL.format(name="a", uuid="1")).createWithFlags(0)
    again = connection.defineXML(SMALL.format(name="b", uuid="1"))
    assert (again.name(), again.state()) == ("b", [hypervisor.VIR_DOMAIN_RUNNING, 0])
    assert len(connection.listAllDomains()) == 1


def test_refusals_have_the_codes_of_libvirt(connection, hypervisor):
    domain = connection.defineXML(SMALL.format(name="a", uuid="1"))
    invalid = hypervisor.VIR_ERR_OPERATION_INVALID
    assert refused(hypervisor, domain.suspend) == invalid
    assert refused(hypervisor, domain.destroy) == invalid
    assert refused(hypervisor, domain.openConsole, None, connection.newStream()) == invalid
    domain.createWithFlags(0)
    assert refused(hypervisor, domain.createWithFlags, 0) == invalid
    assert refused(hypervisor, domain.resume) == invalid
    taken = SMALL.format(name="a", uuid="2")
    failed = hypervisor.VIR_ERR_OPERATION_FAILED
    assert refused(hypervisor, connection.defineXML, taken) == failed
    for wrong in ("<domain", "<domain/>"):
        assert refused(hypervisor, connection.defineXML, wrong) == hypervisor.VIR_ERR_XML_ERROR
    domain.undefineFlags(0)
    missing = hypervisor.VIR_ERR_NO_DOMAIN
    for call in (domain.state, domain.resume, domain.XMLDesc, domain.undefineFlags):
        assert refused(hypervisor, call) == missing
    assert refused(hypervisor, domain.setMetadata, 2, "<x/>", "t", "urn:t") == missing
    assert refused(hypervisor, connection.lookupByUUIDString, "1") == missing
    pool = hypervisor.VIR_ERR_NO_STORAGE_POOL
    assert refused(hypervisor, connection.storagePoolLookupByName, "none") == pool
    unknown = hypervisor.VIR_ERR_INTERNAL_ERROR
    assert refused(hypervisor, hypervisor.open, "qemu:///system") == unknown


def test_refusals_of_the_pool(connection, hypervisor):
    xml = "<pool type='dir'><name>p</name><target><path>/p</path></target></pool>"
    pool = connection.storagePoolCreateXML(xml)
    failed = hypervisor.VIR_ERR_OPERATION_FAILED
    assert refused(hypervisor, connection.storagePoolCreateXML, xml) == failed
    volume = "<volume><name>v</name><capacity>5</capacity></volume>"
    pool.createXML(volume)
    exists = hypervisor.VIR_ERR_STORAGE_VOL_EXIST
    assert refused(hypervisor, pool.createXML, volume) == exists
    found = pool.storageVolLookupByName("v")
    assert (found.name(), found.info()) == ("v", [0, 5, 0])
    found.delete()
    missing = hypervisor.VIR_ERR_NO_STORAGE_VOL
    assert refused(hypervisor, found.delete) == missing
    assert refused(hypervisor, pool.storageVolLookupByName, "v") == missing


def test_nodes_of_one_store_do_not_see_each_other(make_conf):
    hypervisor = fakelibvirt.FakeLibvirt(make_conf(fake_libvirt__nodes=["n1", "n2"]), "host1")
    try:
        one, two = (hypervisor.open(uri) for uri in hypervisor.uris().values())
        assert (one.getHostname(), two.getHostname()) == ("n1", "n2")
        for each in (one, two):
            each.defineXML(SMALL.format(name="same", uuid="1"))
        one.lookupByUUIDString("1").undefineFlags()
        assert (len(one.listAllDomains()), len(two.listAllDomains())) == (0, 1)
    finally:
        hypervisor.close()


def test_the_store_is_where_the_option_says(make_conf, tmp_path):
    path = tmp_path / "deep" / "er" / "store.db"
    hypervisor = fakelibvirt.FakeLibvirt(make_conf(fake_libvirt__store=str(path)), "host1")
    hypervisor.open("fake:///host1").defineXML(SMALL.format(name="a", uuid="1"))
    hypervisor.close()
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT uuid, state FROM domains").fetchall() == [("1", 5)]


def test_a_store_that_is_none_is_said(make_conf, tmp_path):
    path = tmp_path / "store.db"
    path.write_text("this is no database, however long one looks at it\n" * 100)
    hypervisor = fakelibvirt.FakeLibvirt(make_conf(fake_libvirt__store=str(path)), "host1")
    with pytest.raises(hypervisor.libvirtError) as caught:
        hypervisor.open("fake:///host1")
    assert str(path) in str(caught.value)


def test_a_store_of_a_later_make_is_not_touched(make_conf, tmp_path):
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version=99")
    hypervisor = fakelibvirt.FakeLibvirt(make_conf(fake_libvirt__store=str(path)), "host1")
    with pytest.raises(hypervisor.libvirtError) as caught:
        hypervisor.open("fake:///host1")
    assert "99" in str(caught.value)


def test_a_change_waits_for_whoever_holds_the_file(connection, hypervisor, tmp_path, monkeypatch):
    other = sqlite3.connect(tmp_path / "fake_libvirt-host1.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            other.execute("COMMIT")

    monkeypatch.setattr("novalite.virt.libvirt.fakestore.time.sleep", sleep)
    connection.defineXML(SMALL.format(name="a", uuid="1"))
    assert len(waited) == 3
    monkeypatch.setattr("novalite.virt.libvirt.fakestore.BUSY_TIMEOUT", 0.0)
    other.execute("BEGIN IMMEDIATE")
    call = connection.defineXML
    code = refused(hypervisor, call, SMALL.format(name="b", uuid="2"))
    assert code == hypervisor.VIR_ERR_INTERNAL_ERROR
    other.close()
    connection.defineXML(SMALL.format(name="b", uuid="2"))
