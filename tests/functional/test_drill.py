# SPDX-License-Identifier: Apache-2.0
"""Random faults at random moments of boots and deletes; each round has its number as its seed.

A round that failed comes again as it was, as far as the machine lets it: ``--rounds N --first N``.
"""

import random
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field

import pytest

from novalite.devcloud.errors import ClientError
from tests.functional import cloud as cloud_module
from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

# Seconds for the first half of a round, in which the fault happens.
BUSY = 1.5


@dataclass(slots=True)
class Round:
    """What was asked for in one round, and what must come of it."""

    cloud: Cloud
    dice: random.Random
    wanted: set[str] = field(default_factory=set)
    doomed: set[str] = field(default_factory=set)

    def boot(self, count: int) -> None:
        """Ask for servers, one by one or together."""
        api = self.cloud.api
        if count > 1 and self.dice.random() < 0.5:
            self.wanted.update(api.boot_many(count))
        else:
            self.wanted.update(api.boot() for _ in range(count))

    def delete(self, count: int) -> None:
        """Delete some, in whatever state they are."""
        for uuid in self.dice.sample(sorted(self.wanted), min(count, len(self.wanted))):
            self.cloud.api.delete(uuid)
            self.wanted.remove(uuid)
            self.doomed.add(uuid)

    def traffic(self) -> None:
        """Be busy for a while, also while the API is away."""
        end = time.monotonic() + BUSY
        while time.monotonic() < end:
            try:
                self.dice.choice((self.boot, self.delete))(self.dice.randint(1, 3))
            except ClientError:
                # A request without an answer: what it did is found out later.
                eventually(lambda: self.cloud.alive("api"), 60.0, "the API is back")
            time.sleep(self.dice.uniform(0.0, 0.2))

    def settle(self) -> str:
        """Wait for the right end of everything and return what it was."""
        api = self.cloud.api

        def right() -> bool:
            found = {server["id"]: server["status"] for server in api.servers()}
            assert not self.doomed & found.keys(), f"not gone: {self.doomed & found.keys()}"
            assert self.wanted <= found.keys(), f"lost: {self.wanted - found.keys()}"
            assert set(found.values()) <= {"ACTIVE"}, found
            return True

        eventually(right, faults.PROMISE + faults.DOWN_TIME)
        self.cloud.assert_books(faults.PROMISE)
        return f"{len(self.wanted)} ACTIVE, {len(self.doomed)} gone"


Fault = Callable[[Cloud, random.Random], str]


def kill_one(cloud: Cloud, dice: random.Random) -> str:
    """kill -9 of one process, which is started again at once or later."""
    victim = dice.choice(cloud.names)
    cloud.kill(victim)
    time.sleep(dice.choice((0.0, 0.0, 1.0, faults.DOWN_TIME + 2.0)))
    cloud.start(victim)
    return f"kill -9 {victim}"


def kill_all_of_a_kind(cloud: Cloud, dice: random.Random) -> str:
    """kill -9 of all processes of one program."""
    victims = dice.choice((faults.CONDUCTORS, faults.SCHEDULERS, faults.COMPUTES))
    for victim in victims:
        cloud.kill(victim)
    cloud.start(*victims)
    return f"kill -9 {', '.join(victims)}"


def stand_still(cloud: Cloud, dice: random.Random) -> str:
    """SIGSTOP, and SIGCONT some time later."""
    victim = dice.choice(cloud.names)
    cloud.pause(victim)
    time.sleep(dice.uniform(0.5, faults.DOWN_TIME + 3.0))
    cloud.resume(victim)
    return f"SIGSTOP {victim}"


def restart(cloud: Cloud, dice: random.Random) -> str:
    """A planned restart."""
    victim = dice.choice([name for name in cloud.names if name != "api"])
    cloud.restart(victim)
    return f"restart {victim}"


def lock_the_database(cloud: Cloud, dice: random.Random) -> str:
    """The database cannot be written for a while."""
    with faults.locked(cloud):
        time.sleep(dice.uniform(0.5, faults.DOWN_TIME))
    return "database locked"


def kill_the_broker(cloud: Cloud, dice: random.Random) -> str:
    """The broker dies and comes back."""
    assert cloud.broker is not None
    cloud.broker.kill()
    time.sleep(dice.choice((0.0, 2.0, faults.DOWN_TIME + 1.0)))
    cloud.broker.start()
    return "kill -9 of the broker"


def choose(dice: random.Random) -> Fault:
    """Draw a fault that can be played here."""
    known: list[Fault] = [kill_one, kill_one, kill_one, kill_all_of_a_kind, stand_still, restart]
    if cloud_module.database_url_from_environment() is None:
        known.append(lock_the_database)
    if cloud_module.transport_url_from_environment() is None:
        known.append(kill_the_broker)
    return dice.choice(known)


def test_random_faults(
    standing: Cloud, request: pytest.FixtureRequest, rounds: range, table: faults.Table
) -> None:
    first = int(request.config.getoption("--first"))
    for number in range(first, len(rounds) + 1):
        play = Round(standing, random.Random(f"traffic {number}"))
        dice = random.Random(f"fault {number}")
        faults.play(standing, *faults.COMPUTES, spawn_delay=0.2, spawn_jitter=dice.choice((0, 2)))
        play.boot(4)
        fault = choose(dice)
        with futures.ThreadPoolExecutor(1) as pool:
            busy = pool.submit(play.traffic)
            time.sleep(dice.uniform(0.0, BUSY))
            what = fault(standing, dice)
            busy.result()
        play.boot(1)
        with faults.stopwatch() as taken:
            end = play.settle()
        table.add(f"drill {number}: {what}", end, taken[0])
        faults.remove_all(standing)
