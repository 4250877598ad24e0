# SPDX-License-Identifier: Apache-2.0
"""Random walks through the durable action protocol: real database and conductor, simulated hosts.

``NOVALITE_WALKS=N`` walks N seeds instead of a few hundred; ``NOVALITE_SEED=S`` walks one.
"""

import collections
import contextlib
import logging
import os
import random

import pytest

from tests.unit.conductor import checks
from tests.unit.conductor.world import FAULTS, OPTIONS, World

WALKS = int(os.environ.get("NOVALITE_WALKS", "200"))
SEED = os.environ.get("NOVALITE_SEED")
# Seconds, on the world's clock, after which everything is at rest once no more faults fall.
LONGEST = 60.0
# Faults that may rightly end a build in ERROR, and how many of the others must not. Where time runs
# swiftly, messages are so slow that this alone is loss after loss.
HARD = {"spawn_fails", "refuse", "destroy_fails"}
FEW = 4
SWIFT = 0.1


@pytest.fixture
def quiet_books(open_books):
    logging.disable(logging.CRITICAL)
    yield open_books(**OPTIONS)
    logging.disable(logging.NOTSET)


def make_world(books, seed):
    """Make the world of a seed: how many hosts and conductors, servers and faults."""
    books.empty()
    rng = random.Random(seed)
    most = rng.choice((1, 2, 3, 4, 6, 10, 16))
    kinds = rng.sample(FAULTS, rng.choice((1, 2, 2, 3, 3, 4, 6)))
    budget = collections.Counter(rng.choice(kinds) for _ in range(most))
    world = World(books, seed, budget, rng.choice((2, 3)), rng.choice((1, 2)))
    world.create(rng.choice((1, 1, 2)), "r1")
    if rng.random() < 0.3:
        world.create(1, "r2")
    return world, rng


def storm(world, rng):
    """Let things happen, with faults among them; then some hosts never come back."""
    for number in range(rng.randrange(30, 250)):
        world.step()
        if number % 8 == 0 and checks.at_rest(world) and rng.random() < 0.5:
            break
    for host in list(world.hosts.values())[1:]:
        if host.state != "up" or host.partitioned:
            host.doomed = rng.random() < 0.3


def walk(books, seed):
    world, rng = make_world(books, seed)
    with contextlib.closing(world.view):
        go(world, rng)
    return world


def go(world, rng):
    books = world.books
    storm(world, rng)
    world.settle(LONGEST)
    for uuid in world.servers:
        server = books.server(uuid)
        if server.vm_state == "error" and server.host:
            # A delete that failed has left the guest: a new one ends it.
            world.delete(uuid)
            world.settle(LONGEST)
    for uuid in world.servers:
        text = checks.final(world, uuid) or unjust_error(world, uuid)
        if text:
            world.fail(f"{uuid}: {text}")


def unjust_error(world, uuid):
    """A few dead processes and lost messages end no build in ERROR, while hosts are there."""
    spent = collections.Counter(world.spent)
    away = spent["crash"] + spent["partition"]
    if set(spent) & HARD or len(world.spent) > FEW or away >= len(world.hosts):
        return None
    fault = world.books.fault(uuid)
    if fault is None or world.tempo > SWIFT:
        return None
    return f"ERROR after {world.spent}: {fault.message}\n{fault.details}"


def test_random_walks_keep_the_promises(quiet_books):
    for seed in [int(SEED)] if SEED else range(WALKS):
        walk(quiet_books, seed)
