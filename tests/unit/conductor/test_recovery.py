# SPDX-License-Identifier: Apache-2.0
"""Recovery, one pass at a time: what is past due, what hosts are silent, what must be cleaned."""

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.conductor import leases, recovery
from novalite.conductor.silence import Watch
from novalite.conductor.tasks.build_instances import BuildInstances
from novalite.db import builds, schema, services
from novalite.objects import base, loss
from novalite.objects.block_device import BlockDevice
from novalite.objects.instance import NetworkInfo
from novalite.objects.request_spec import Limits
from novalite.objects.states import Step
from tests.unit.conductor.doubles import FakeCompute, FakeNetwork, FakeScheduler, FakeVolumes

BEGIN_TIMEOUT = 10.0
DOWN = 60.0
ROOT_VOLUME = BlockDevice("image", "i", 1, boot_index=0, device_name="/dev/vda")


class Scene:
    """Recovery of one conductor on the books, and hosts that report or do not."""

    def __init__(self, books):
        self.books, self.clock = books, books.clock
        self.compute, self.network, self.driven = FakeCompute(), FakeNetwork(), []
        self.volumes = FakeVolumes()
        self.watch = Watch(DOWN, lambda: books.clock.moment)
        database = books.database
        flow = BuildInstances(
            books.conf,
            database,
            FakeScheduler(),
            self.compute,
            leases.Leases(database, "c1", 15.0),
        )
        self.recovery = recovery.Recovery(
            books.conf,
            database,
            self.compute,
            self.network,
            self.volumes,
            self.watch,
            self.driven.extend,
            flow,
        )
        self.count = {}

    def host(self, name="h1"):
        self.books.register(name)
        self.count[name] = 0

    def report(self, *hosts):
        for host in hosts:
            self.count[host] += 1
            self.books.write(services.heartbeat, host, "nova-compute", 1, self.count[host])

    def due(self):
        """Let every deadline be past."""
        for table in (schema.instance_actions, schema.cleanups):
            self.books.execute(sa.update(table).values(deadline=self.clock() - 0.001))

    def run(self):
        """One pass with everything due; return what it has cast and driven."""
        self.due()
        self.again()

    def again(self):
        self.compute.builds.clear()
        self.compute.destroys.clear()
        self.driven.clear()
        self.recovery.run()

    def silence(self, seconds=DOWN + 1):
        """Let time pass in which nobody reports and this conductor looks all the time."""
        for _ in range(int(seconds)):
            recovery.watch_hosts(self.books.database, self.watch, 4.0)
            self.clock.advance(1.0)
        recovery.watch_hosts(self.books.database, self.watch, 4.0)


@pytest.fixture
def scene(books):
    made = Scene(books)
    made.host("h1")
    return made


class TestWaitingBuilds:
    def test_one_whose_wake_up_got_lost_is_driven_and_loses_nothing(self, scene, books):
        server = books.create()
        scene.run()
        assert scene.driven == ["r1"]
        assert books.action(server.action_id).drives == 0
        scene.again()
        assert scene.driven == []

    def test_one_in_time_is_left_alone(self, scene, books):
        books.create(grace=3.0)
        scene.again()
        assert scene.driven == []

    def test_an_expired_lease_is_a_loss_and_is_driven(self, scene, books):
        server = books.create()
        books.take(owner="dead")
        scene.run()
        assert scene.driven == ["r1"]
        assert books.waits(server.action_id)
        action = books.action(server.action_id)
        assert (action.drives, action.owner) == (1, None)
        assert action.args["losses"] == ["conductor dead did not renew its lease"]
        [kept] = books.events(action.id)
        assert (kept.event, kept.attempt, kept.details["code"]) == (loss.EVENT, 0, loss.LEASE)

    def test_the_ninth_expired_lease_ends_it(self, scene, books):
        server = books.create()
        for _ in range(9):
            assert books.server(server.uuid).vm_state == "building"
            books.take(owner="dead")
            scene.run()
        assert scene.driven == []
        assert books.server(server.uuid).vm_state == "error"
        assert len(books.fault(server.uuid).details.splitlines()) == 9


class TestStartedBuilds:
    def test_one_that_did_not_begin_is_cast_again(self, scene, books):
        server, action = books.started(host="h1")
        scene.run()
        ((host, request),) = scene.compute.builds
        assert (host, request.action_id, request.attempt) == ("h1", action.id, 1)
        assert (request.instance.uuid, request.spec.instance_uuid) == (server.uuid, server.uuid)
        stored = books.action(action.id)
        assert (stored.drives, stored.recasts, stored.step) == (1, 1, "started")
        assert stored.deadline - books.clock.moment == pytest.approx(BEGIN_TIMEOUT, abs=0.1)

    def test_the_limits_of_the_selection_go_with_it(self, scene, books):
        books.create()
        (taken,) = books.take()
        books.start(taken, "h1", {"limits": base.encode(Limits(memory_mb=512.0))})
        scene.run()
        assert scene.compute.builds[0][1].limits == Limits(memory_mb=512.0)

    def test_after_three_casts_more_it_goes_elsewhere(self, scene, books):
        server, action = books.started(host="h1")
        for _ in range(3):
            scene.run()
            assert len(scene.compute.builds) == 1
        scene.run()
        assert (scene.compute.builds, scene.driven) == ([], ["r1"])
        assert books.waits(action.id)
        assert books.action(action.id).drives == 4
        assert books.action(action.id).args["losses"] == [
            *["attempt 1: no begin, cast again to h1"] * 3,
            "attempt 1: host h1 did not begin after 3 more casts",
        ]
        assert books.cleanups(server.uuid) == {}

    def test_a_cast_that_the_bus_refuses_is_made_in_the_next_pass(self, scene, books):
        books.started(host="h1")
        scene.compute.down = 1
        scene.run()
        assert scene.compute.builds == []
        scene.run()
        assert len(scene.compute.builds) == 1

    def test_of_a_host_that_is_down_but_not_yet_silent_waits_for_nothing(self, scene, books):
        _, action = books.started(host="h1", reservation_id="r1")
        books.clock.advance(DOWN + 1)
        scene.run()
        assert (scene.compute.builds, scene.driven) == ([], [])
        assert books.action(action.id).drives == 0
        scene.again()
        assert books.action(action.id).target_host == "h1"

    def test_of_a_host_that_is_forced_down_but_reports_is_cast_again(self, scene, books):
        _, action = books.started(host="h1")
        books.execute(sa.update(schema.services).values(forced_down=True))
        for _ in range(3):
            scene.run()
            assert len(scene.compute.builds) == 1
        scene.run()
        assert scene.driven == ["r1"]
        assert books.waits(action.id)


class TestBegunBuilds:
    def test_one_that_no_report_names_is_cast_again_to_its_host(self, scene, books):
        _, action = books.begun(host="h1")
        for number in range(1, 6):
            scene.run()
            assert [host for host, _ in scene.compute.builds] == ["h1"]
            assert books.action(action.id).drives == number
        assert books.action(action.id).step is Step.BEGUN

    def test_the_ninth_loss_ends_it_and_its_host_is_cleaned(self, scene, books):
        server, action = books.begun(host="h1")
        for _ in range(8):
            scene.run()
        assert books.action(action.id).drives == 8
        scene.run()
        assert (scene.compute.builds, scene.driven) == ([], [])
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.host, books.held(server.uuid)) == ("error", None, {})
        assert books.cleanups(server.uuid) == {"h1": 1}
        assert books.action(action.id).drives == 9
        losses = books.fault(server.uuid).details.splitlines()
        assert (
            losses == ["attempt 1: begun work was not named in two reports, cast again to h1"] * 9
        )

    def test_one_in_hand_is_left_alone(self, scene, books):
        _, action = books.begun(host="h1")
        scene.again()
        assert scene.compute.builds == []
        assert books.action(action.id).drives == 0


class TestSilentHosts:
    @pytest.mark.parametrize(("state", "cleanups"), [("started", {}), ("begun", {"h1": 1})])
    def test_work_is_moved_away(self, scene, books, state, cleanups):
        server, action = getattr(books, state)(host="h1")
        scene.silence()
        scene.run()
        assert scene.driven == ["r1"]
        assert books.waits(action.id)
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})
        assert books.cleanups(server.uuid) == cleanups
        stored = books.action(action.id)
        assert (stored.drives, stored.failures) == (1, [])
        assert stored.args["losses"] == ["attempt 1: host h1 fell silent"]
        kept = books.events(action.id)[-1]
        assert (kept.event, kept.attempt, kept.finish is None) == (loss.EVENT, 1, False)
        assert kept.details == {"code": loss.SILENT, "text": "attempt 1: host h1 fell silent"}

    def test_an_active_server_is_never_moved(self, scene, books):
        server, _ = books.active(host="h1")
        scene.silence()
        scene.run()
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.host) == ("active", "h1")

    def test_not_before_this_conductor_has_watched_long_enough(self, scene, books):
        books.begun(host="h1")
        books.clock.advance(DOWN * 3)
        scene.silence(DOWN - 1)
        scene.run()
        assert scene.driven == []
        assert books.rows(sa.select(schema.cleanups)) == []

    def test_a_report_since_the_last_look_stops_the_move(self, scene, books):
        _, action = books.begun(host="h1")
        scene.silence()
        scene.report("h1")
        scene.run()
        assert scene.driven == []
        assert books.action(action.id).step is Step.BEGUN

    def test_a_new_start_since_the_last_look_stops_the_move(self, scene, books):
        _, action = books.begun(host="h1")
        scene.silence()
        books.register("h1")
        scene.run()
        assert scene.driven == []
        assert books.action(action.id).step is Step.BEGUN


class TestDeletes:
    def deleting(self, books, **values):
        server, _ = books.active(host="h1", **values)
        return server, books.delete(server.uuid).request.action_id

    def test_one_that_was_not_answered_is_cast_again(self, scene, books):
        server, action_id = self.deleting(books)
        scene.run()
        ((host, request),) = scene.compute.destroys
        assert (host, request.node, request.attempt) == ("h1", "h1", None)
        assert (request.action_id, request.instance.uuid) == (action_id, server.uuid)
        action = books.action(action_id)
        assert (action.drives, action.failures) == (1, [])
        assert action.deadline - books.clock.moment == pytest.approx(BEGIN_TIMEOUT, abs=0.1)

    def test_lost_casts_are_no_failed_destroys_but_have_their_bound(self, scene, books):
        server, action_id = self.deleting(books)
        for _ in range(8):
            scene.run()
            assert len(scene.compute.destroys) == 1
        scene.run()
        assert scene.compute.destroys == []
        assert books.server(server.uuid).vm_state == "error"
        fault = books.fault(server.uuid)
        assert fault.message == (
            f"Deleting instance {server.uuid} failed: the host did not answer after many casts"
        )
        assert len(fault.details.splitlines()) == 9
        assert not books.delete(server.uuid).closed

    def test_of_a_host_that_is_down_but_not_yet_silent_waits(self, scene, books):
        server, action_id = self.deleting(books)
        books.clock.advance(DOWN + 1)
        scene.run()
        assert scene.compute.destroys == []
        assert books.action(action_id).drives == 0
        assert books.server(server.uuid).task_state == "deleting"

    def test_of_a_silent_host_ends_without_it(self, scene, books):
        server, action = books.begun(host="h1")
        ours = NetworkInfo("p1", "net", "private", "fa:16:3e:00:00:01")
        users = NetworkInfo("p2", "net", "private", "fa:16:3e:00:00:02", owned=False)
        books.progress(action, network_info=[ours, users])
        books.finish(action, network_info=[ours, users])
        books.delete(server.uuid)
        scene.silence()
        scene.run()
        assert scene.network.freed == [(server.uuid, {"p2"})]
        assert books.server(server.uuid).deleted
        assert books.held(server.uuid) == {}
        assert books.cleanups(server.uuid) == {"h1": None}

    @pytest.mark.parametrize("error", [None, exception.NeighborUnavailable(service="volume")])
    def test_of_a_silent_host_gives_volumes_back(self, scene, books, error):
        server, action = books.begun(host="h1", block_devices=[ROOT_VOLUME])
        books.finish(action, block_devices=[ROOT_VOLUME])
        books.delete(server.uuid)
        scene.volumes.error = error
        scene.silence()
        scene.run()
        built = books.server(server.uuid).launched_at is not None
        assert scene.volumes.freed == ([(server.uuid, built)] if error is None else [])
        assert books.server(server.uuid).deleted

    def test_of_a_server_without_a_host_gives_volumes_back(self, scene, books):
        server, action = books.begun(host="h1", block_devices=[ROOT_VOLUME])
        books.finish(action, fault="no", reschedule=False)
        assert not books.delete(server.uuid).closed
        scene.run()
        assert scene.volumes.freed == [(server.uuid, False)]
        assert books.server(server.uuid).deleted

    def test_of_a_silent_host_ends_although_ports_cannot_be_freed(self, scene, books):
        server, _ = self.deleting(books)
        scene.network.error = exception.NeighborUnavailable(service="network")
        scene.silence()
        scene.run()
        assert books.server(server.uuid).deleted

    def test_of_a_host_that_reports_again_goes_on_with_it(self, scene, books):
        server, action_id = self.deleting(books)
        scene.silence()
        scene.report("h1")
        scene.run()
        assert not books.server(server.uuid).deleted
        assert len(scene.compute.destroys) == 1

    def test_of_a_host_whose_service_is_gone_ends_without_it(self, scene, books):
        server, _ = self.deleting(books)
        books.execute(sa.delete(schema.services))
        scene.run()
        assert books.server(server.uuid).deleted


class TestCleanups:
    def test_a_host_that_is_up_is_told_until_it_answers(self, scene, books):
        server, action = books.begun(host="h1")
        books.finish(action, fault="no", guest_left=True)
        for _ in range(3):
            scene.run()
            ((host, request),) = scene.compute.destroys
            assert (host, request.node, request.attempt, request.action_id) == ("h1", "h1", 1, None)
            assert request.instance.uuid == server.uuid
            scene.again()
            assert scene.compute.destroys == []
        books.gone(server, attempt=1)
        scene.run()
        assert scene.compute.destroys == []

    def test_of_a_deleted_server_too(self, scene, books):
        server = books.create()
        books.delete(server.uuid)
        books.write(builds.add_cleanup, server.uuid, "h1", "h1", None)
        scene.run()
        assert scene.compute.destroys[0][1].attempt is None

    def test_a_host_that_is_down_is_told_when_it_is_back(self, scene, books):
        server = books.create()
        books.delete(server.uuid)
        books.write(builds.add_cleanup, server.uuid, "h1", "h1", None)
        books.clock.advance(DOWN + 1)
        scene.run()
        assert scene.compute.destroys == []
        scene.report("h1")
        scene.run()
        assert len(scene.compute.destroys) == 1

    def test_many_of_a_host_that_is_down_do_not_hold_the_others_back(self, scene, books):
        for number in range(recovery.PASS + 1):
            books.write(builds.add_cleanup, f"gone-{number}", "lost-host", "lost-host", None)
        server = books.create()
        books.delete(server.uuid)
        books.write(builds.add_cleanup, server.uuid, "h1", "h1", None)
        scene.run()
        assert [host for host, _ in scene.compute.destroys] == ["h1"]


class TestOnePass:
    def test_two_conductors_do_the_same_thing_once(self, scene, books):
        _, action = books.started(host="h1")
        other = Scene(books)
        scene.due()
        seen = books.action(action.id)
        hosts = {s.host: s for s in books.read(services.list_all)}
        scene.recovery._look(seen, hosts)
        other.recovery._look(seen, hosts)
        assert len(scene.compute.builds + other.compute.builds) == 1
        assert books.action(action.id).drives == 1

    def test_a_repeated_transaction_counts_once(self, scene, books, monkeypatch):
        _, action = books.begun(host="h1")
        scene.silence()
        scene.due()
        books.repeat_transactions(monkeypatch)
        scene.recovery.run()
        stored = books.action(action.id)
        assert (stored.drives, stored.args["losses"]) == (1, ["attempt 1: host h1 fell silent"])
        assert scene.driven == ["r1"]

    def test_an_action_that_cannot_be_read_does_not_stop_the_others(self, scene, books):
        broken, _ = books.started(host="h1", reservation_id="r1")
        books.started(host="h1", reservation_id="r2")
        books.execute(
            sa.update(schema.request_specs)
            .where(schema.request_specs.c.instance_uuid == broken.uuid)
            .values(spec={"novalite_object": "Unheard"})
        )
        scene.run()
        assert len(scene.compute.builds) == 1
        scene.again()
        assert scene.compute.builds == []

    def test_without_a_database_the_pass_ends(self, scene, books, monkeypatch):
        books.started(host="h1")
        scene.due()

        def gone(*_args, **_kwargs):
            raise exception.DatabaseUnavailable()

        monkeypatch.setattr(scene.recovery, "_look", gone)
        with pytest.raises(exception.DatabaseUnavailable):
            scene.recovery.run()
