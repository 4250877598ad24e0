# SPDX-License-Identifier: Apache-2.0
"""The policy of a server group, checked once more when a build begins (case V08)."""

import itertools
import uuid

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novalite.db import attempts, server_groups
from novalite.objects.action import ActionEvent
from novalite.objects.server_group import AFFINITY, ANTI_AFFINITY, ServerGroup
from tests.unit.db.books import new_server

VIOLATED = "Anti-affinity instance group policy was violated."
_numbers = itertools.count()


def new_group(books, policy=ANTI_AFFINITY, most=1):
    rules = {"max_server_per_host": most} if policy == ANTI_AFFINITY else {}
    group = ServerGroup(str(uuid.uuid4()), "p1", "alice", "g", policy, rules)
    books.write(server_groups.create, group)
    return group.uuid


def member(books, group, host, noted=True):
    """Return (server, action) of a member's build that was cast to *host*."""
    server, spec = new_server(f"m{next(_numbers)}")
    books.create((server, spec))
    books.write(server_groups.join, group, "p1", [server.uuid])
    return server, go_to(books, server, group, host, noted)


def go_to(books, server, group, host, noted=True):
    (taken,) = books.take([server.reservation_id])
    args = {"alternates": [{"host": "h9"}], **({"group": group} if noted else {})}
    return books.start(taken, host, {**taken.action.args, **args}).action


def test_the_second_one_goes_elsewhere(books):
    group = new_group(books)
    _, first = member(books, group, "h1")
    server, action = member(books, group, "h1")
    assert books.begin(first).verdict == "GO"
    claim = ActionEvent("compute_claim", "h1", 10.0, 11.0, "Success", {"memory": {}}, attempt=1)
    outcome = books.begin(action, event=claim)
    assert outcome.verdict == "SUPERSEDED" and outcome.drive == [server.reservation_id]
    assert outcome.reason == f"Build of instance {server.uuid} was re-scheduled: {VIOLATED}"
    found = books.action(action.id)
    assert books.waits(action.id) and found.failures == ["h1"]
    assert (found.drives, found.args["alternates"]) == (0, []), "it is chosen for anew"
    assert found.args["tried"] == [f"h1: {VIOLATED}"]
    assert books.server(server.uuid).host is None and books.held(server.uuid) == {}
    (event,) = books.events(action.id)
    assert (event.result, event.details) == ("Error", {"memory": {}, "error": VIOLATED})
    second = go_to(books, server, group, "h2")
    assert books.begin(second, 2, host="h2").verdict == "GO"


def test_the_last_attempt_tells_the_policy(books):
    group = new_group(books)
    books.begin(member(books, group, "h1")[1])
    server, action = member(books, group, "h1")
    item = books.begin_item(action)
    outcome = books.write(attempts.begin, "h1", 1, item, 25.0, 1)
    assert outcome.verdict == "SUPERSEDED" and outcome.drive == []
    fault = books.fault(server.uuid)
    assert fault.message == (
        f"Exceeded maximum number of retries. Build of instance {server.uuid} was re-scheduled: "
        f"{VIOLATED}"
    )
    assert books.server(server.uuid).vm_state == "error"


def test_affinity_on_two_hosts_at_one_time(books):
    group = new_group(books, AFFINITY)
    _, first = member(books, group, "h1")
    _, second = member(books, group, "h2")
    assert books.begin(second, host="h2").verdict == "GO"
    outcome = books.begin(first)
    assert outcome.verdict == "SUPERSEDED"
    assert outcome.reason.endswith(": Affinity instance group policy was violated.")


def test_who_has_begun_is_not_asked_again(books):
    """A host that starts over has its place already, and a repeated question its answer."""
    group = new_group(books)
    server, action = member(books, group, "h1")
    books.begin(action)
    # Forced past all filters, so nothing was noted.
    _, forced = member(books, group, "h1", noted=False)
    assert books.begin(forced).verdict == "GO"
    assert books.begin(action).verdict == "GO"
    assert books.begin(action, token="t2").verdict == "RESUME"
    assert books.server(server.uuid).host == "h1"


def test_the_answer_was_lost(books):
    group = new_group(books)
    books.begin(member(books, group, "h1")[1])
    server, action = member(books, group, "h1")
    books.begin(action)
    outcome = books.begin(action)
    assert (outcome.verdict, outcome.drive) == ("SUPERSEDED", [])
    assert books.action(action.id).failures == ["h1"], "it is counted once"
    assert books.waits(action.id) and books.server(server.uuid).host is None


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    policy=st.sampled_from([ANTI_AFFINITY, AFFINITY]),
    most=st.integers(1, 2),
    hosts=st.lists(st.sampled_from(["h1", "h2", "h3"]), min_size=1, max_size=7),
)
def test_whatever_is_chosen_the_policy_is_kept(open_books, policy, most, hosts):
    """Schedulers that know nothing of each other send members anywhere."""
    books = open_books()
    group = new_group(books, policy, most)
    started = [(host, member(books, group, host)[1]) for host in hosts]
    placed = [host for host, one in started if books.begin(one, host=host).verdict == "GO"]
    if policy == ANTI_AFFINITY:
        assert all(placed.count(host) == min(hosts.count(host), most) for host in set(hosts))
    else:
        assert placed == [host for host in hosts if host == hosts[0]]


def test_servers_of_no_group_cost_no_statement(books, monkeypatch):
    monkeypatch.setattr(server_groups, "violation", None)
    _server, action = books.started()
    assert books.begin(action).verdict == "GO"
