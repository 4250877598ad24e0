# SPDX-License-Identifier: Apache-2.0
"""Server groups: who is in them, from the create of a server to the end of its delete."""

import uuid

import pytest

from novalite import exception
from novalite.db import server_groups
from novalite.objects.server_group import ANTI_AFFINITY, ServerGroup


def new_group(books, project_id="p1", **values):
    group = ServerGroup(
        uuid=str(uuid.uuid4()),
        project_id=project_id,
        user_id="u",
        name="g",
        policy=ANTI_AFFINITY,
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
