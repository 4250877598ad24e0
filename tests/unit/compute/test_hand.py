# SPDX-License-Identifier: Apache-2.0
"""What is in hand, and who may take it away."""

import threading

import pytest

from novalite.compute.hand import Hand, Stage, Work
from novalite.objects.build import InHand


@pytest.fixture
def hand():
    return Hand()


def work(attempt=1, uuid="a", action_id=1, stage=Stage.CLAIMED, begun=False):
    return Work(action_id, attempt, uuid, "node1", f"t{attempt}", stage, begun)


def take(hand, *works):
    for each in works:
        assert hand.take(each)[0] is None
    return works[0] if len(works) == 1 else works


def test_the_same_attempt_is_taken_once_and_an_older_one_not_at_all(hand):
    take(hand, work(2))
    assert hand.take(work(2)) == ("it is in hand", [])
    assert hand.take(work(1)) == ("a newer one is in hand", [])
    assert hand.take(work(1, uuid="b"))[0] is None


def test_a_newer_action_is_newer_whatever_its_attempt(hand):
    first = take(hand, work(3, action_id=1))
    assert hand.take(work(1, action_id=2)) == (None, [first])


@pytest.mark.parametrize("stage", [Stage.CLAIMED, Stage.QUEUED, Stage.FINISHING, Stage.FAILED])
def test_a_newer_attempt_drops_what_waits(hand, stage):
    first = take(hand, work(1))
    hand.move(first, Stage.CLAIMED, stage)
    assert hand.take(work(2)) == (None, [first])
    assert first.stage is Stage.OVER


@pytest.mark.parametrize("stage", [Stage.RUNNING, Stage.DONE, Stage.LEAVING])
def test_what_is_in_the_middle_of_something_is_only_marked(hand, stage):
    first = take(hand, work(1))
    hand.move(first, Stage.CLAIMED, stage)
    assert hand.cancel("a", None) == []
    assert first.cancelled and first.stage is stage
    assert not hand.move(first, stage, Stage.FINISHING), "a cancelled one goes no further"


def test_cancel_keeps_to_its_bound(hand):
    first = take(hand, work(2))
    assert hand.cancel("a", 1) == [] and not first.cancelled
    assert hand.cancel("b", None) == []
    assert hand.cancel("a", 2) == [first]


def test_a_move_wants_the_stage_it_comes_from(hand):
    first = take(hand, work(1))
    assert not hand.move(first, Stage.QUEUED, Stage.RUNNING)
    assert hand.move(first, Stage.CLAIMED, Stage.QUEUED, begun=True)
    assert first.begun


def test_only_begun_work_without_its_last_answer_is_named(hand):
    asked = take(hand, work(1, uuid="a"))
    begun = take(hand, work(1, uuid="b", begun=True))
    take(hand, work(1, uuid="c", begun=True, stage=Stage.DONE))
    hand.take_delete("d", 9, None)
    hand.take_delete("e", None, 3)
    assert hand.named() == [InHand(1, 1), InHand(9, 0)]
    hand.end(begun)
    hand.end_delete("d", 9, None)
    assert hand.named() == []
    hand.move(asked, Stage.CLAIMED, Stage.QUEUED, begun=True)
    assert len(hand.named()) == 1


def test_a_delete_is_taken_once(hand):
    assert hand.take_delete("a", 9, None)
    assert not hand.take_delete("a", 9, None)
    assert hand.take_delete("a", None, 2)
    hand.end_delete("a", 9, None)
    assert hand.take_delete("a", 9, None)


def test_only_what_has_not_begun_is_dropped_for_a_stop(hand):
    asked, begun = take(hand, work(1, uuid="a"), work(1, uuid="b", begun=True))
    assert hand.drop_not_begun() == [asked]
    assert begun.stage is Stage.CLAIMED


def test_waiting_ends_when_nothing_is_in_hand(hand):
    first = take(hand, work(1))
    assert not hand.wait_idle(0.0)
    waiting = threading.Thread(target=hand.wait_idle, args=(30.0,))
    waiting.start()
    hand.end(first)
    waiting.join(10.0)
    assert not waiting.is_alive()


def test_one_thing_at_a_time_is_done_to_a_guest(hand):
    with hand.instance_lock("a") as held:
        assert held
        with hand.instance_lock("b") as other:
            assert other
        with hand.instance_lock("a", timeout=0.0) as again:
            assert not again
    with hand.instance_lock("a", timeout=0.0) as held:
        assert held
    assert hand._locks == {}, "nothing is left of a lock that nobody wants"
