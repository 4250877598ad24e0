# SPDX-License-Identifier: Apache-2.0
"""Server groups: who is in them, from the create of a server to the end of its delete."""

import uuid

import pytest

from novalite import exception
from novalite.db import server_groups
from novalite.objects.server_group import (
    AFFINITY,
    ANTI_AFFINITY,
    SOFT_AFFINITY,
    SOFT_ANTI_AFFINITY,
    ServerGroup,
)


def new_group(books, project_id="p1", policy=ANTI_AFFINITY, **values):
    group = ServerGroup(
        uuid=str(uuid.uuid4()),
        project_id=project_id,
        user_id="u",
        name="g",
        policy=policy,
        **values,
    )
    books.write(server_groups.create, group)
    return group


def test_members_in_the_order_of_their_making(books):
    group = new_group(books, rules={"max_server_per_host": 2})
    servers = [books.create().uuid for _ in range(3)]
    books.write(server_groups.join, group.uuid, "p1", list(reversed(servers)))
    found = books.read(server_groups.get, group.uuid)
    assert found.members == servers
    assert found.rules == {"max_server_per_host": 2}
    assert books.read(server_groups.of_instances, [*servers, str(uuid.uuid4())]) == dict.fromkeys(
        servers, group.uuid
    )


def test_a_server_leaves_when_its_delete_ends(books):
    group = new_group(books)
    waiting, (running, _action) = books.create(), books.active(host="h1", reservation_id="r2")
    books.write(server_groups.join, group.uuid, "p1", [waiting.uuid, running.uuid])
    books.delete(waiting.uuid)
    assert books.read(server_groups.get, group.uuid).members == [running.uuid]
    opened = books.delete(running.uuid)
    assert books.read(server_groups.get, group.uuid).members == [running.uuid]
    books.gone(running, action_id=opened.request.action_id)
    assert books.read(server_groups.get, group.uuid).members == []
    assert books.read(server_groups.of_instances, [waiting.uuid, running.uuid]) == {}


def test_nobody_joins_what_is_not_the_projects(books):
    group, server = new_group(books), books.create()
    for key, project in ((group.uuid, "other"), (str(uuid.uuid4()), "p1")):
        with pytest.raises(exception.InstanceGroupInBodyNotFound):
            books.write(server_groups.join, key, project, [server.uuid])
    assert books.read(server_groups.of_instances, [server.uuid]) == {}


def test_delete_lets_the_servers_go(books):
    group, server = new_group(books), books.create()
    books.write(server_groups.join, group.uuid, "p1", [server.uuid])
    books.write(server_groups.delete, group.uuid)
    assert books.read(server_groups.of_instances, [server.uuid]) == {}
    with pytest.raises(exception.InstanceGroupNotFound):
        books.write(server_groups.delete, group.uuid)


def test_pages_of_one_project_or_of_all(books):
    mine = [new_group(books).uuid for _ in range(3)]
    other = new_group(books, "other")

    def page(project, offset, limit):
        found = books.read(
            lambda conn: server_groups.page(conn, project, offset=offset, limit=limit)
        )
        return [group.uuid for group in found]

    assert page("p1", 0, 10) == mine
    assert page("p1", 1, 1) == [mine[1]]
    assert page(None, 2, 10) == [mine[2], other.uuid]
    with pytest.raises(exception.InstanceGroupNotFound):
        books.read(server_groups.get, other.uuid, "p1")


# -- where members are


def in_group(books, way="create", *, group, **values):
    """Return a server of a group, made *way*, with its action if it has one."""
    made = getattr(books, way)(**values)
    server = made if way == "create" else made[0]
    books.write(server_groups.join, group.uuid, "p1", [server.uuid])
    return made


def test_requests_learn_where_the_members_are(books):
    group, other = new_group(books, rules={"max_server_per_host": 2}), new_group(books)
    asking = in_group(books, group=group)
    there, _ = in_group(books, "active", group=group, host="h1", reservation_id="r2")
    begun, _ = in_group(books, "begun", group=group, host="h2", reservation_id="r3")
    in_group(books, "started", group=group, host="h3", reservation_id="r4")
    alone = books.create(reservation_id="r5")
    second = in_group(books, group=other, reservation_id="r6")
    uuids = [asking.uuid, alone.uuid, second.uuid]
    found = books.read(server_groups.for_requests, uuids)
    assert set(found) == {asking.uuid, second.uuid}
    mine = found[asking.uuid]
    assert (mine.uuid, mine.policy, mine.rules) == (
        group.uuid,
        ANTI_AFFINITY,
        {"max_server_per_host": 2},
    )
    assert mine.placed == {there.uuid: "h1", begun.uuid: "h2"}
    assert found[second.uuid].placed == {}
    hosts = books.read(server_groups.hosts_of, [there.uuid, asking.uuid, str(uuid.uuid4())])
    assert hosts == {there.uuid: "h1"}


@pytest.mark.parametrize(
    ("policy", "most", "hosts", "broken"),
    [
        (ANTI_AFFINITY, None, [], False),
        (ANTI_AFFINITY, None, ["h2", "h3"], False),
        (ANTI_AFFINITY, None, ["h1"], True),
        (ANTI_AFFINITY, 2, ["h1", "h2"], False),
        (ANTI_AFFINITY, 2, ["h1", "h1"], True),
        (AFFINITY, None, [], False),
        (AFFINITY, None, ["h1"], False),
        (AFFINITY, None, ["h2"], True),
        (SOFT_ANTI_AFFINITY, None, ["h1"], False),
        (SOFT_AFFINITY, None, ["h2"], False),
    ],
)
def test_violation(books, policy, most, hosts, broken):
    group = new_group(
        books, policy=policy, rules={} if most is None else {"max_server_per_host": most}
    )
    asking = in_group(books, group=group)
    for number, host in enumerate(hosts):
        in_group(books, "begun", group=group, host=host, reservation_id=f"m{number}")
    found = books.write(server_groups.violation, group.uuid, asking.uuid, "h1")
    assert (found is not None) is broken
    if broken:
        assert found == f"{policy.capitalize()} instance group policy was violated."


def test_a_server_does_not_stand_in_its_own_way(books):
    group = new_group(books)
    server, _ = in_group(books, "begun", group=group, host="h1")
    assert books.write(server_groups.violation, group.uuid, server.uuid, "h1") is None
    books.write(server_groups.delete, group.uuid)
    other = books.create(reservation_id="r2")
    assert books.write(server_groups.violation, group.uuid, other.uuid, "h1") is None
