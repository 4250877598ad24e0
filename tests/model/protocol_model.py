# SPDX-License-Identifier: Apache-2.0
"""The durable action protocol as an explicit-state model: every order of events within a budget.

The rules are those of docs/architecture.md. When a rule changes, change it here first and see what
breaks. One server, two hosts, one database, one bus; all clocks are folded into which event comes
first. :func:`explore` walks through every reachable state and reports the shortest way to each
violation of an invariant:

I1  never two running guests on hosts that work and are not fenced
I2  the guest of an ACTIVE server is never destroyed except by a delete
I3  at rest: ACTIVE with one running guest on its host, or ERROR or DELETED with none
I4  at rest: the allocations equal the truth
I5  no action stays open for ever

Run it for all pairs of faults: ``python -m tests.model.protocol_model``.
"""

import itertools
import random
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.model import bus, compute, conductor
from tests.model.state import FAULTS, HOSTS, Move, Moves, State, Wording, initial

Key = tuple[Any, ...]


@dataclass
class Result:
    """What an exploration saw: ``violations`` maps each to the labels of a shortest way to it."""

    states: int = 0
    complete: bool = True
    violations: dict[str, list[str]] = field(default_factory=dict)
    finals: dict[str, int] = field(default_factory=dict)

    def explain(self) -> str:
        """Return the violations with their ways, for the message of a failed test."""
        return "\n".join(
            "\n    ".join([violation, *way]) for violation, way in self.violations.items()
        )


def successors(key: Key, wording: Wording) -> list[Move]:
    """Return every move that is possible in a state."""
    found = Moves(key, wording)
    conductor.moves(found)
    compute.moves(found)
    bus.moves(found)
    return found.found


def at_rest(key: Key) -> str | None:
    """Check the invariants of a state in which nothing happens any more by itself."""
    state = State(key)
    reachable = [index for index in HOSTS if state.hosts[index].reachable]
    guests = [index for index in reachable if state.hosts[index].guest]
    if state.open or state.delete == "open":
        return "I5 an action is open and nothing will drive it"
    if state.server == "ACTIVE":
        return _active_at_rest(state, reachable, guests)
    if state.delete == "failed":
        return None  # three answers that destroy failed: the guest is there and the fault says so
    if guests:
        return f"I3 {state.server} with a guest left on a reachable host"
    if state.allocations or state.server_host >= 0:
        return f"I4 {state.server} keeps host or allocation"
    return None


def _active_at_rest(state: State, reachable: list[int], guests: list[int]) -> str | None:
    guest = state.hosts[state.server_host].guest
    if state.server_host in reachable and not (guest and guest.running):
        return "I3 ACTIVE without a running guest"
    if any(index != state.server_host for index in guests):
        return "I3 a guest is left beside the ACTIVE one"
    if state.allocations != 1 << state.server_host:
        return "I4 wrong allocations of an ACTIVE server"
    return None


def explore(
    budget: dict[str, int],
    wording: Wording | None = None,
    *,
    conductors: int = 1,
    limit: int = 900_000,
    stop_at_first: bool = False,
) -> Result:
    """Visit every state that can be reached with at most these faults, breadth first.

    :param limit: most states; beyond it the result is not ``complete``
    :param stop_at_first: end with the first violation
    """
    rules = wording or Wording()
    first = initial(budget, conductors)
    came_from: dict[Key, tuple[Key, str] | None] = {first: None}
    todo = deque([first])
    result = Result()
    while todo and not (stop_at_first and result.violations):
        if len(came_from) > limit:
            result.complete = False
            break
        _visit(todo, came_from, rules, result)
    result.states = len(came_from)
    return result


def _visit(
    todo: deque[Key],
    came_from: dict[Key, tuple[Key, str] | None],
    rules: Wording,
    result: Result,
) -> None:
    key = todo.popleft()
    rests = True
    for move in successors(key, rules):
        if move.kind == "progress" and move.key != key:
            rests = False
        if move.violation:
            if move.violation not in result.violations:
                result.violations[move.violation] = [*_way(came_from, key), move.label]
            if move.violation.startswith(("I1", "I2")):
                continue  # what follows from it is no news
        if move.key not in came_from:
            came_from[move.key] = (key, move.label)
            todo.append(move.key)
    if rests:
        server = State(key).server
        result.finals[server] = result.finals.get(server, 0) + 1
        violation = at_rest(key)
        if violation and violation not in result.violations:
            result.violations[violation] = _way(came_from, key)


def _way(came_from: dict[Key, tuple[Key, str] | None], key: Key) -> list[str]:
    labels = []
    step = came_from[key]
    while step is not None:
        key, label = step
        labels.append(label)
        step = came_from[key]
    return labels[::-1]


def walk(
    budget: dict[str, int],
    runs: int,
    wording: Wording | None = None,
    *,
    conductors: int = 2,
    seed: int = 1,
) -> Result:
    """Walk at random with a larger budget: faults for a while, then calm until all is at rest."""
    rng = random.Random(seed)
    result = Result(complete=False)
    for _ in range(runs):
        violation, labels = _walk_once(budget, wording or Wording(), conductors, rng, result)
        if violation and violation not in result.violations:
            result.violations[violation] = labels
    return result


def _walk_once(
    budget: dict[str, int], rules: Wording, conductors: int, rng: random.Random, result: Result
) -> tuple[str | None, list[str]]:
    key = initial(budget, conductors)
    calm = rng.randrange(10, 120)
    labels: list[str] = []
    for step in range(600):
        moves = successors(key, rules)
        forward = [move for move in moves if move.kind == "progress" and move.key != key]
        kinds = ("fault", "repair") if step < calm else ("repair",)
        other = [move for move in moves if move.kind in kinds]
        if not forward and not other:
            server = State(key).server
            result.finals[server] = result.finals.get(server, 0) + 1
            return at_rest(key), labels
        choose = other if other and (not forward or rng.random() < 0.3) else forward
        move = rng.choice(choose)
        labels.append(move.label)
        key = move.key
        result.states += 1
        if move.violation:
            return move.violation, labels
    return "I5 not at rest after 600 steps", labels


def pairs() -> Iterator[tuple[str, str]]:
    """Yield all pairs of faults; a server is deleted once at most."""
    for pair in itertools.combinations_with_replacement(FAULTS, 2):
        if pair.count("delete") < 2:
            yield pair


def main() -> int:
    """Explore all pairs; return 1 if anything is violated."""
    states = violations = 0
    for pair in pairs():
        result = explore({fault: pair.count(fault) for fault in pair})
        states += result.states
        violations += len(result.violations) + (not result.complete)
        print(f"{' + '.join(pair)}: {result.states} states", flush=True)
        if result.violations:
            print(result.explain())
    print(f"{states} states, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
