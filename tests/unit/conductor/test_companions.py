# SPDX-License-Identifier: Apache-2.0
"""What a request says of the other servers that it is about."""

import uuid

import pytest

from novalite.conductor.tasks import companions
from novalite.db import server_groups
from novalite.objects.request_spec import InstanceGroup
from novalite.objects.server_group import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, ServerGroup
from tests.unit.db.books import new_server


class Reader:
    """A database that is not asked without need."""

    def __init__(self, books):
        self.books, self.asked = books, 0

    def read(self, work):
        self.asked += 1
        return self.books.database.read(work)


def hinted(**hints):
    server, spec = new_server()
    spec.scheduler_hints = hints
    return server, spec


def test_nothing_is_read_for_plain_requests(books):
    reader = Reader(books)
    _, spec = hinted(query="[]", group="", same_host=[])
    companions.fill(reader, [spec])
    assert (reader.asked, spec.instance_group, spec.hinted_hosts) == (0, None, {})


def test_group_and_hints_are_filled_in_by_one_reading(books):
    group = ServerGroup(str(uuid.uuid4()), "p1", "alice", "g", ANTI_AFFINITY, {})
    books.write(server_groups.create, group)
    one, _ = books.active(host="h1", reservation_id="r1")
    two, _ = books.active(host="h2", reservation_id="r2")
    books.write(server_groups.join, group.uuid, "p1", [one.uuid])
    server, grouped = hinted(group=group.uuid)
    books.create((server, grouped))
    books.write(server_groups.join, group.uuid, "p1", [server.uuid])
    _, near = hinted(same_host=one.uuid)
    _, away = hinted(different_host=[two.uuid, str(uuid.uuid4())])
    reader = Reader(books)
    companions.fill(reader, [grouped, near, away])
    assert reader.asked == 1
    assert grouped.instance_group == InstanceGroup(group.uuid, ANTI_AFFINITY, {}, {one.uuid: "h1"})
    assert (near.hinted_hosts, away.hinted_hosts) == ({one.uuid: "h1"}, {two.uuid: "h2"})


@pytest.mark.parametrize(
    ("policy", "forced", "guarded"),
    [
        (ANTI_AFFINITY, {}, "g"),
        (AFFINITY, {}, "g"),
        (SOFT_AFFINITY, {}, None),
        (AFFINITY, {"force_host": "h1"}, None),
        (AFFINITY, {"force_node": "n1"}, None),
    ],
)
def test_which_groups_are_guarded(policy, forced, guarded):
    _, spec = new_server()
    assert companions.guarded(spec) is None
    spec.instance_group = InstanceGroup("g", policy)
    for name, value in forced.items():
        setattr(spec, name, value)
    assert companions.guarded(spec) == guarded
