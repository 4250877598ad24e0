# SPDX-License-Identifier: Apache-2.0
"""The kept ranking against one made anew, and the front of a sorted collection."""

import random
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from novalite.objects import aggregate
from novalite.objects.aggregate import Aggregate
from novalite.scheduler import ranking, weights
from novalite.scheduler.front import Front
from novalite.scheduler.ranking import KeptRanking, Ranking
from novalite.scheduler.weights.base import Weigher
from tests.unit.scheduler import fakes

DEMAND = fakes.pipeline().demand(fakes.spec())
JOINED = [
    aggregate.joined(aggregates)
    for aggregates in (
        (),
        (Aggregate(1, "a1", "light", None, {"ram_weight_multiplier": "0.5"}),),
        (Aggregate(2, "a2", "away", None, {"disk_weight_multiplier": "-1"}),),
    )
]


class Bounded(Weigher):
    """Both ends of the scale are fixed."""

    minval = 2
    maxval = 5

    def column(self, hosts, demand):
        return [host.io_ops for host in hosts]


def host(rng, coarse):
    """A host; coarse ones often weigh the same."""
    many = 3 if coarse else 10**6
    return SimpleNamespace(
        free_ram_mb=rng.randrange(-1, many) * 1000,
        free_vcpus=rng.randrange(-2, many) * 0.1,
        free_disk_mb=rng.randrange(0, many) * 1024,
        io_ops=rng.randrange(0, 2 if coarse else 8),
        num_instances=rng.randrange(0, 3),
        failed_builds=int(rng.random() < 0.1),
        joined=rng.choice(JOINED) if rng.random() < 0.1 else JOINED[0],
    )


def weighers(rng):
    values = {option: rng.choice([0.0, 1.0, 1.0, -1.0, 0.3]) for option in weights.WEIGHERS}
    values["build_failure_weight_multiplier"] = rng.choice([0.0, 1e6])
    return [*weights.load(values), Bounded(rng.choice([0.0, 1.5]))]


@settings(max_examples=40)
@given(st.integers(0, 10**9), st.booleans(), st.sampled_from([1, 4, 30]))
def test_kept_ranking_equals_one_made_anew(seed, coarse, front):
    rng = random.Random(seed)
    hosts = [host(rng, coarse) for _ in range(rng.choice([0, 1, 2, 5, 60]))]
    survivors = {index for index in range(len(hosts)) if rng.random() < 0.8}
    using = weighers(rng)
    with mock.patch.object(ranking, "_FRONT", front):
        kept = KeptRanking(hosts, sorted(survivors), DEMAND, using)
        for _ in range(25):
            if not hosts or rng.random() < 0.1:
                hosts.append(host(rng, coarse))
                index = len(hosts) - 1
            else:
                index = rng.randrange(len(hosts))
            change(hosts, index, rng, coarse)
            survives = rng.random() < 0.8
            (survivors.add if survives else survivors.discard)(index)
            kept.update(hosts, index, survives)
            fresh = Ranking(hosts, sorted(survivors), DEMAND, using)
            count, shuffle, draw = rng.choice([1, 3, 5, 100]), rng.random() < 0.3, rng.random()
            best = [each.best(count, shuffle, random.Random(draw)) for each in (kept, fresh)]
            assert best[0] == best[1]
            for leader in best[0]:
                assert kept.weights(leader) == fresh.weights(leader)


def change(hosts, index, rng, coarse):
    """Let a host take a little, as most changes are, or become another."""
    if rng.random() < 0.7:
        hosts[index].free_ram_mb -= 64
        hosts[index].free_disk_mb -= 1024
        hosts[index].free_vcpus -= 1
    else:
        hosts[index] = host(rng, coarse)


def test_a_small_change_at_the_top_does_not_order_all_anew():
    rng = random.Random(1)
    hosts = [host(rng, coarse=False) for _ in range(2000)]
    using = weights.load({"ram_weight_multiplier": 1.0, "disk_weight_multiplier": 1.0})
    kept = KeptRanking(hosts, range(2000), DEMAND, using)
    with (
        mock.patch.object(KeptRanking, "_rebase", side_effect=AssertionError("ordered anew")),
        mock.patch.object(KeptRanking, "_everyone", side_effect=AssertionError("all weighed")),
    ):
        for _ in range(50):
            (best,) = kept.best(1, False, rng)
            change_end = max(range(2000), key=lambda index: hosts[index].free_ram_mb)
            for index in (best, change_end):
                hosts[index].free_ram_mb -= 4096
                kept.update(hosts, index, True)
            fresh = Ranking(hosts, range(2000), DEMAND, using)
            assert kept.best(5, False, rng) == fresh.best(5, False, rng)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
@pytest.mark.parametrize("made", [Ranking, KeptRanking])
def test_a_weight_that_is_no_number_is_an_error(made, weight):
    class Odd(Weigher):
        def weigh(self, host, demand):
            return weight

    hosts = [fakes.host_state("h1"), fakes.host_state("h2")]
    with pytest.raises(ValueError, match="Odd weighs a host with what is no finite number"):
        made(hosts, [0, 1], DEMAND, [Odd()])


@pytest.mark.parametrize("name", ["clamp", "normalise", "weighted", "multiplier_on"])
def test_weighers_that_weigh_in_their_own_way_are_not_kept(name):
    own = type("Own", (Weigher,), {name: getattr(Weigher, name)})
    assert ranking.may_be_kept([own()])
    own = type("Own", (Weigher,), {name: lambda *_args: None})
    assert not ranking.may_be_kept([*weights.load({}), own()])


@given(
    st.sets(st.integers(0, 60)),
    st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=60),
    st.integers(1, 9),
)
def test_front_is_the_beginning_of_the_collection(numbers, steps, most):
    everything = {(number,) for number in numbers}
    front = Front(most, everything)
    for comes, number in steps:
        entry = (number,)
        if comes == (entry in everything):
            continue
        (everything.add if comes else everything.discard)(entry)
        (front.add if comes else front.discard)(entry)
        first = list(front)
        assert first == sorted(everything)[: len(first)]
        assert len(first) <= 2 * most
        if front.limit is None:
            assert len(first) == len(everything)
        else:
            assert all(other >= front.limit for other in everything - set(first))
