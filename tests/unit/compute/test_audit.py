# SPDX-License-Identifier: Apache-2.0
"""A host's own audit: claims are put right, guests are told, what is in work is left alone."""

import logging

import pytest

from novalite import exception
from novalite.compute import audit
from novalite.compute.books import Claim
from novalite.objects import build
from novalite.objects.capacity import Need
from novalite.objects.states import VMState
from tests.unit.compute.conftest import destroy_for, request_for


def kept_of(request, **changes):
    """What the conductor says of a server that was built here."""
    instance = request.instance
    instance.host, instance.node, instance.vm_state = "host1", "node1", VMState.ACTIVE
    for name, value in changes.items():
        setattr(instance, name, value)
    return build.Kept(instance, request.attempt)


class Audited:
    """A compute with one server, and what the conductor says that it has to keep."""

    def __init__(self, world):
        self.world = world
        self.request = request_for()
        self.uuid = self.request.instance.uuid
        world.boot(self.request)
        self.kept = [kept_of(self.request)]
        self.open = []
        self.tell()
        self.auditor = world.manager._auditor

    def tell(self):
        self.world.conductor.registration = build.Registration(kept=self.kept, open=self.open)

    @property
    def book(self):
        return self.world.host.tracker._books["node1"]

    def used(self):
        picture = self.world.books()
        return picture.memory_mb_used, picture.local_gb_used, picture.vcpus_used

    def forget_claim(self):
        with self.book.lock:
            self.book.remove(self.uuid, list(self.book.servers[self.uuid]))

    def told(self):
        """Return the last picture that went to the conductor."""
        self.world.settle()
        return self.world.conductor.items(build.Picture)[-1].picture


@pytest.fixture
def audited(world):
    return Audited(world)


def test_books_that_agree_are_left_as_they_are(audited):
    generation = audited.world.books().generation
    assert audited.auditor.run() == []
    assert audited.world.books().generation == generation
    books = audited.auditor.books()
    assert [claim.instance_uuid for claim in books.claims] == [audited.uuid]
    assert [guest.instance_uuid for guest in books.guests] == [audited.uuid]
    assert (books.host, books.busy, books.corrected) == ("host1", [], [])


def test_a_lost_claim_is_entered_again(audited):
    full = audited.used()
    audited.forget_claim()
    assert audited.used() != full
    [text] = audited.auditor.run()
    assert text.startswith(f"node node1 counts nothing for server {audited.uuid}, which needs")
    assert audited.used() == full
    assert audited.told().memory_mb_used == full[0]


def test_a_claim_of_nobody_goes(audited):
    full = audited.used()
    with audited.book.lock:
        audited.book.put("gone", "t", Claim(1, Need(100, 2, 3), settled=True))
    [text] = audited.auditor.run()
    assert "for gone, which is no server here" in text
    assert audited.used() == full
    assert audited.told().running_vms == 1


def test_a_claim_of_another_size_is_made_right(audited):
    full = audited.used()
    audited.forget_claim()
    with audited.book.lock:
        audited.book.put(audited.uuid, "t", Claim(1, Need(64, 9, 1), settled=True))
    assert len(audited.auditor.run()) == 1
    assert audited.used() == full
    # The claim that was put right is given back as any other.
    assert audited.world.host.tracker.release_up_to(audited.uuid, None)
    assert audited.used() == (512, 0, 0)


def test_sums_that_drifted_are_counted_anew(audited):
    full = audited.used()
    audited.book.used = Need(1, 2, 3)
    audited.book.building = 5
    assert audited.auditor.run() == ["the sums of node node1 were not those of its claims"]
    assert audited.used() == full
    assert audited.told().current_workload == 0


def test_a_server_with_an_open_action_is_left_alone(audited):
    audited.kept = [kept_of(audited.request, action_id=7)]
    audited.tell()
    audited.forget_claim()
    assert audited.auditor.run() == []
    audited.kept, audited.open = [], [audited.uuid]
    audited.tell()
    assert audited.auditor.run() == []


def test_what_is_in_hand_is_left_alone(audited):
    """A build whose claim no database knows yet, and a delete that is not reported yet."""
    audited.world.manager.build_and_run_instances([request_for()])
    assert audited.auditor.run() == []
    audited.world.manager.destroy_instances([destroy_for(audited.request, action_id=99)])
    audited.world.host.deletes.run()
    assert audited.uuid not in audited.book.servers
    assert audited.auditor.run() == []


def test_a_server_that_something_is_being_done_to_is_left_alone(audited, monkeypatch):
    monkeypatch.setattr(audit, "LOCK_WAIT", 0.0)
    audited.forget_claim()
    with audited.world.hand.instance_lock(audited.uuid):
        assert audited.auditor.run() == []
    assert len(audited.auditor.run()) == 1


def test_the_conductor_has_the_last_word(audited):
    """Between the look and the server's lock the server may have gone."""
    audited.forget_claim()
    conductor, answers = audited.world.conductor, [audited.kept, []]

    def get_kept(context, *, host, timeout):
        return build.Registration(kept=answers.pop(0))

    conductor.get_kept = get_kept
    audited.world.driver.guests.clear()
    assert audited.auditor.run() == []
    assert answers == [] and audited.uuid not in audited.book.servers


def test_a_guest_of_nobody_is_told_and_stays_and_so_does_its_claim(audited, caplog):
    full = audited.used()
    audited.kept = []
    audited.tell()
    audited.world.driver.add("stranger")
    assert audited.auditor.run() == []
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert {"stranger", audited.uuid} <= {
        word for record in told for word in record.getMessage().replace(",", "").split()
    }
    assert set(audited.world.driver.guests) == {"stranger", audited.uuid}
    assert audited.used() == full


def test_a_missing_guest_is_told(audited, caplog):
    audited.world.driver.guests.clear()
    assert audited.auditor.run() == []
    assert "whose hypervisor has no guest of it" in caplog.text


def test_repair_sends_every_picture_anew(audited):
    before = audited.world.books().generation
    books = audited.auditor.repair()
    assert books.pictures[0].generation.newer_than(before)
    assert audited.told().generation == books.pictures[0].generation
    assert books.corrected == []
    audited.forget_claim()
    assert len(audited.auditor.repair().corrected) == 1


def test_without_a_conductor_nothing_is_changed(audited, caplog):
    audited.forget_claim()
    audited.world.conductor.faults.append("lost")
    audit.run(audited.auditor)
    assert audited.uuid not in audited.book.servers
    assert "The audit of the books is put off: The message bus" in caplog.text
    audited.world.conductor.faults.append("lost")
    with pytest.raises(exception.BusUnavailable):
        audited.auditor.repair()


def test_it_runs_periodically_unless_switched_off(make_world):
    for interval, repaired in ((600, True), (-1, False)):
        audited = Audited(make_world(audit_interval=interval))
        audited.forget_claim()
        [task] = [t for t in audited.world.manager.periodic_tasks() if t.name == "audit_books"]
        task._task()
        assert (audited.uuid in audited.book.servers) is repaired
        audited.world.kill()


def test_a_kept_server_without_a_build_is_counted(audited):
    """Its delete has failed, so what it holds is not free."""
    request = request_for()
    uuid = request.instance.uuid
    kept = kept_of(request, vm_state=VMState.ERROR)
    audited.kept = [*audited.kept, build.Kept(kept.instance, 0)]
    audited.tell()
    audited.world.driver.add(uuid, attempt=3)
    assert len(audited.auditor.run()) == 1
    assert uuid in audited.book.servers


def test_books_over_the_endpoint(audited):
    [(_, [endpoint])] = audited.world.manager.endpoints()
    assert endpoint.audit_books(None, repair=False) == audited.auditor.books()
    assert endpoint.audit_books(None, repair=True).host == "host1"
