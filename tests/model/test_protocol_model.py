# SPDX-License-Identifier: Apache-2.0
"""No pair of faults breaks an invariant of the protocol, and each rule is needed.

Plain runs leave out the pairs with the most states; NOVALITE_MODEL=full takes all of them, the
other reading of the registration, and long random walks.
"""

import os
import random
from dataclasses import fields, replace

import pytest

from tests.model import protocol_model
from tests.model.state import FAULTS, Wording

FULL = os.environ.get("NOVALITE_MODEL") == "full"
LARGE = {
    ("crash", "crash"),
    ("crash", "partition"),
    ("duplicate", "partition"),
    ("partition", "partition"),
    ("partition", "slow"),
    ("partition", "spawn_fails"),
}
# "ask" leaves a guest of the open attempt until begin is answered; "unfinished" removes it at once.
READINGS = ("ask", "unfinished") if FULL else ("ask",)
PAIRS = [pair for pair in protocol_model.pairs() if FULL or pair not in LARGE]

# Rule -> (the value that switches it off, faults with which an invariant then breaks, how).
Needed = tuple[object, tuple[str, ...], str]
NEEDED: dict[str, Needed] = {
    "finished_is_dropped": (False, ("duplicate",), "I2"),
    "own_guest_only": (False, ("loss", "slow"), "I2"),
    "failure_after_removal": (False, ("spawn_fails",), "I1"),
    "refusal_checked": (False, ("slow", "refusal"), "I1"),
    "refusal_after_removal": (False, ("crash", "refusal"), "I1"),
    "random_token": (False, ("duplicate", "duplicate"), "I2"),
    "start_over_after_go": (False, ("loss", "slow"), "I2"),
    "registration": ("none", ("crash",), "I1"),
    "recasts": (False, ("slow",), "I1"),
    "begun_stays": (False, ("loss", "slow"), "I1"),
    "cleanup_driven": (False, ("partition", "delete"), "I3"),
    "silence_after_fence": (False, ("partition",), "I1"),
    "move_checks_counter": (False, ("crash",), "I1"),
    "fencing": (False, ("partition",), "I1"),
    "fence": ("destroy", ("partition",), "I2"),
    "fence_reads_domains": (False, ("crash", "partition"), "I1"),
    "late_resume": (False, ("partition",), "I1"),
    "report_lifts_fence": (False, ("partition",), "I1"),
    "stale_answers_dropped": (False, ("partition",), "I1"),
    "registration_resumes": (False, ("crash", "partition"), "I3"),
    "leaving_cleans": (False, ("partition", "delete"), "I3"),
    "leaving_frees": (False, ("spawn_fails",), "I4"),
    "cleanup_bounded": (False, ("crash",), "I2"),
    "epochs": (False, ("crash", "refusal"), "I3"),
    "start_checks_attempt": (False, ("slow",), "I1"),
}
# The others: with two or three faults the rest of the rules holds the invariants up without them.
# They make an end come sooner (delete_cancels), keep the counts honest (waiting_is_free,
# answers_count), or are the second lock on a door.
SECOND_LOCKS = {
    "ended_destroys",
    "newest_token",
    "newer_cancels",
    "verdict_on_this_start",
    "waiting_is_free",
    "fence_keeps_token",
    "gone_checks_epoch",
    "delete_cancels",
    "answers_count",
}


def budget(faults: tuple[str, ...]) -> dict[str, int]:
    return {fault: faults.count(fault) for fault in faults}


@pytest.mark.parametrize("registration", READINGS)
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_pair_of_faults(pair: tuple[str, str], registration: str) -> None:
    result = protocol_model.explore(budget(pair), Wording(registration=registration))
    assert not result.violations, result.explain()
    assert result.complete
    assert result.finals, "something comes to rest"


@pytest.mark.parametrize("rule", NEEDED)
def test_without_this_rule_an_invariant_breaks(rule: str) -> None:
    value, faults, invariant = NEEDED[rule]
    conductors = 2 if rule == "start_checks_attempt" else 1
    result = protocol_model.explore(
        budget(faults),
        replace(Wording(), **{rule: value}),  # type: ignore[arg-type]
        conductors=conductors,
        stop_at_first=True,
    )
    assert [found[:2] for found in result.violations] == [invariant], result.explain()


def test_every_rule_is_accounted_for() -> None:
    assert {field.name for field in fields(Wording)} == set(NEEDED) | SECOND_LOCKS
    assert not set(NEEDED) & SECOND_LOCKS


def test_waiting_for_silence_must_not_count() -> None:
    """Otherwise a server ends in ERROR although nothing of it has failed."""
    counting = protocol_model.explore({"crash": 1, "loss": 1}, Wording(waiting_is_free=False))
    assert set(counting.finals) == {"ACTIVE", "ERROR"}
    assert set(protocol_model.explore({"crash": 1, "loss": 1}).finals) == {"ACTIVE"}


def test_without_faults_the_server_becomes_active() -> None:
    result = protocol_model.explore({})
    assert not result.violations
    assert set(result.finals) == {"ACTIVE"}


def test_only_a_delete_deletes_and_only_failures_end_in_error() -> None:
    assert set(protocol_model.explore({"spawn_fails": 2}).finals) == {"ACTIVE", "ERROR"}
    assert set(protocol_model.explore({"delete": 1}).finals) == {"ACTIVE", "DELETED"}


@pytest.mark.parametrize("seed", range(200 if FULL else 5))
def test_walks_with_many_faults_and_two_conductors(seed: int) -> None:
    rng = random.Random(seed)
    many = {fault: rng.choice([0, 0, 1, 1, 2]) for fault in FAULTS}
    many["delete"] = seed % 2
    result = protocol_model.walk(many, 20, seed=seed)
    assert not result.violations, result.explain()
    assert sum(result.finals.values()) == 20
