# SPDX-License-Identifier: Apache-2.0
"""Builders for the tests of the hypervisor layer."""

import itertools
import uuid

import pytest
from oslo_config import cfg

import novalite.conf
from novalite import context
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance
from novalite.objects.request_spec import ImageMeta
from novalite.virt.driver import GuestMetadata
from novalite.virt.libvirt import fakelibvirt
from novalite.virt.libvirt.driver import LibvirtDriver

_numbers = itertools.count(1)


@pytest.fixture
def make_conf(tmp_path):
    """Return a function that makes a configuration; options as group__name=value."""

    def make(**options):
        conf = cfg.ConfigOpts()
        novalite.conf.register_opts(conf)
        conf([], project="novalite", default_config_files=[], default_config_dirs=[])
        conf.set_override("state_path", str(tmp_path))
        for name, value in options.items():
            group, _, option = name.rpartition("__")
            conf.set_override(option, value, group or None)
        return conf

    return make


@pytest.fixture
def make_instance():
    """Return a function that makes an instance of one vcpu, 64 MB and 1 GB."""

    def make(**fields):
        number = next(_numbers)
        flavor = fields.pop("flavor", None) or Flavor("1", "m1.nano", 1, 64, 1)
        given = {
            "uuid": str(uuid.uuid4()),
            "project_id": "p" * 32,
            "user_id": "u" * 32,
            "display_name": f"server{number}",
            "flavor": flavor,
            "id": number,
            "image_ref": "70a599e0-31e7-49b7-b260-868f441e862b",
        }
        return Instance(**(given | fields))

    return make


class Cloudlet:
    """One hypervisor and its driver, with the calls of a compute in short."""

    def __init__(self, conf, host="host1"):
        self.conf = conf
        self.hypervisor = fakelibvirt.FakeLibvirt(conf, host)
        self.driver = LibvirtDriver(
            conf, self.hypervisor, self.hypervisor.uris(), on_reload=self.hypervisor.reload
        )
        self.driver.init_host()

    def spawn(self, instance, *, cancelled=lambda: False, networks=(), **metadata):
        given = {"action_id": 7, "attempt": 1, "token": "token"} | metadata
        self.driver.spawn(
            context.service_context(),
            instance,
            ImageMeta(size=5_000_000),
            list(networks),
            GuestMetadata(**given),
            cancelled,
        )

    def xml(self, instance, node="host1"):
        connection = self.hypervisor.open(self.hypervisor.uris()[node])
        return connection.lookupByUUIDString(instance.uuid).XMLDesc(0)

    def volumes(self, node="host1"):
        connection = self.hypervisor.open(self.hypervisor.uris()[node])
        pool = connection.storagePoolLookupByName("novalite")
        return sorted(volume.name() for volume in pool.listAllVolumes(0))


@pytest.fixture
def make_cloudlet(make_conf):
    """Return a function that makes a hypervisor with its driver; closed after the test."""
    made = []

    def make(host="host1", **options):
        made.append(Cloudlet(make_conf(**options), host))
        return made[-1]

    yield make
    for cloudlet in made:
        cloudlet.hypervisor.close()
