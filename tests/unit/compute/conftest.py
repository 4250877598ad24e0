# SPDX-License-Identifier: Apache-2.0
"""A compute host that the tests drive by hand."""

import itertools
import uuid

import pytest
from oslo_config import cfg

import novalite.conf
from novalite import context
from novalite.compute import manager as manager_module
from novalite.objects import build
from novalite.objects.block_device import BlockDevice
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance
from novalite.objects.request_spec import Generation, Limits, NetworkRequest, RequestSpec
from tests.unit.compute import doubles

_numbers = itertools.count(1)


@pytest.fixture
def make_conf(tmp_path):
    """Return a function that makes a configuration; options as group__name=value."""

    def make(**options):
        conf = cfg.ConfigOpts()
        novalite.conf.register_opts(conf)
        conf([], project="novalite", default_config_files=[], default_config_dirs=[])
        given = {"host": "host1", "state_path": str(tmp_path), "service_down_time": 60}
        for name, value in (given | options).items():
            group, _, option = name.rpartition("__")
            conf.set_override(option, value, group or None)
        return conf

    return make


class World:
    """One compute with its surroundings. ``restart`` is a kill -9 and a new start."""

    def __init__(self, conf, driver=None, conductor=None):
        self.conf = conf
        self.clock = doubles.Clock()
        self.driver = driver or doubles.Driver()
        self.network = doubles.Network()
        self.volumes = doubles.Volumes()
        self.conductor = conductor or doubles.Conductor()
        self.failures = []
        self.manager = None

    def start(self):
        self.manager = manager_module.ComputeManager(
            self.conf,
            self.conductor,
            self.driver,
            self.network,
            self.volumes,
            self.failures.append,
            self.clock,
        )
        host = self.manager.host
        host.builds, host.deletes, host.ends = doubles.Pool(), doubles.Pool(), doubles.Pool()
        self.manager.prepare()
        return self

    def kill(self):
        """Let the process vanish: nothing of its memory is used any more."""
        self.manager._identity.release()
        self.manager = None

    def restart(self):
        self.kill()
        return self.start()

    @property
    def host(self):
        return self.manager.host

    @property
    def hand(self):
        return self.manager.host.hand

    def report(self):
        """Send one report with everything that is due; back-off is over by then."""
        self.clock.advance(0.001)
        self.host.reporter.send()

    def work(self):
        """Run what the pools hold, once."""
        return self.host.builds.run() + self.host.deletes.run() + self.host.ends.run()

    def settle(self):
        """Let everything come to its end, as long as the conductor answers."""
        for _ in range(30):
            self.clock.advance(1.0)
            self.host.reporter.send()
            self.host.fence.attend()
            if not self.work() and not len(self.host.reporter._waiting):
                return
        raise AssertionError("it does not come to rest")

    def fence(self):
        """Let the fence fall, as if no report had got through for long enough."""
        self.clock.advance(self.host.fence.limit + 0.1)
        assert self.host.fence.is_closed()
        self.host.fence.attend()

    def boot(self, request):
        """Cast a build and let it come to its end."""
        self.manager.build_and_run_instances([request])
        self.settle()

    def books(self):
        return self.host.tracker.picture("node1")


@pytest.fixture
def make_world(make_conf):
    """Return a function that makes and starts a world; options as for make_conf."""

    def make(*, driver=None, conductor=None, started=True, **options):
        world = World(make_conf(**options), driver, conductor)
        return world.start() if started else world

    return make


@pytest.fixture
def world(make_world):
    return make_world()


def request_for(
    *,
    instance_uuid=None,
    action_id=None,
    attempt=1,
    flavor=None,
    limits="none",
    networks=(),
    node="node1",
    image_ref="image",
    devices=(),
):
    """Return a build message; two with the same ids are the same attempt."""
    flavor = flavor or Flavor("1", "m1.tiny", 1, 512, 1)
    number = next(_numbers)
    instance = Instance(
        uuid=instance_uuid or str(uuid.uuid4()),
        project_id="p" * 32,
        user_id="u" * 32,
        display_name=f"server{number}",
        flavor=flavor,
        id=number,
        image_ref=image_ref,
        block_devices=list(devices),
    )
    spec = RequestSpec(
        instance_uuid=instance.uuid,
        project_id=instance.project_id,
        user_id=instance.user_id,
        flavor=flavor,
        volume_backed=not image_ref,
        networks=list(networks),
    )
    who = context.RequestContext(
        user_id=instance.user_id, project_id=instance.project_id, overwrite=False
    )
    return build.BuildRequest(
        action_id=action_id or number,
        attempt=attempt,
        node=node,
        instance=instance,
        spec=spec,
        limits=Limits() if limits == "none" else limits,
        context=who.to_wire(),
    )


def again(request, **changes):
    """Return the same message once more, as a second delivery or a recast would bring it."""
    given = {
        "instance_uuid": request.instance.uuid,
        "action_id": request.action_id,
        "attempt": request.attempt,
        "flavor": request.instance.flavor,
        "limits": request.limits,
        "networks": request.spec.networks,
        "devices": request.instance.block_devices,
        "image_ref": request.instance.image_ref,
    }
    return request_for(**(given | changes))


def destroy_for(request, *, attempt=None, action_id=None, **instance):
    """Return the message to remove the server of *request*."""
    server = request.instance
    for name, value in instance.items():
        setattr(server, name, value)
    return build.DestroyRequest(server, "node1", request.context, attempt, action_id)


PRIVATE = NetworkRequest(network_id="private")
ROOT_VOLUME = BlockDevice("image", "image", 10, boot_index=0, device_name="/dev/vda")
OLD = Generation(0, 0)
