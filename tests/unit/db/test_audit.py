# SPDX-License-Identifier: Apache-2.0
"""What an audit reads, and repairs that look again before they change anything."""

import pytest
import sqlalchemy as sa

from novalite.conductor import audit as conductor_audit
from novalite.db import audit, builds, compute_nodes, schema
from novalite.objects import agreement
from novalite.objects.audit import Difference, Kind
from novalite.objects.capacity import Need
from tests.unit.db.books import RESOURCES, Overtaken, picture

_i, _al = schema.instances, schema.allocations


def hold(books, consumer, node="h1", **amounts):
    for name, used in amounts.items():
        books.execute(
            sa.insert(_al).values(
                consumer=consumer, node=node, resource_class=name, used=used, created_at=1.0
            )
        )


def drop(books, consumer):
    books.execute(sa.delete(_al).where(_al.c.consumer == consumer))


def differences(books):
    return agreement.compare_database(books.read(audit.read))


def orphan_guest(server, host="h1", attempt=1):
    return Difference(
        Kind.GUEST_ORPHAN, "", instance_uuid=server.uuid, host=host, node=host, attempt=attempt
    )


def test_what_is_read(books):
    active, _ = books.active()
    begun, _ = books.begun(reservation_id="r2")
    waiting = books.create(reservation_id="r3")
    books.write(compute_nodes.save, picture(memory_mb_used=576))
    books.write(builds.add_cleanup, active.uuid, "h2", "h2", 1)
    facts = books.read(audit.read)
    found = facts.servers[active.uuid]
    assert (found.host, found.node, found.vm_state, found.busy) == ("h1", "h1", "active", False)
    assert (found.need, found.flavor, found.counted) == (Need(64, 1, 1), (1, 64), (1, 64))
    assert (found.attempt, found.placed) == (1, True)
    assert facts.servers[begun.uuid].busy and facts.servers[waiting.uuid].busy
    assert facts.allocations == {uuid: {"h1": RESOURCES} for uuid in (active.uuid, begun.uuid)}
    assert facts.records["h1"].numbers["memory_mb_used"] == 576
    assert facts.records["h1"].picture.memory_mb_used == 576
    assert facts.cleanups == {(active.uuid, "h2")}
    assert differences(books) == []


def test_a_volume_backed_server_needs_no_root_disk(books):
    server, _ = books.active()
    books.execute(sa.update(_i).where(_i.c.uuid == server.uuid).values(image_ref=""))
    assert books.read(audit.read).servers[server.uuid].need == Need(64, 0, 1)


def test_deleted_servers_are_read_if_something_names_them(books):
    server, action = books.active()
    books.delete(server.uuid)
    [delete] = [
        row.id for row in books.rows(sa.select(schema.instance_actions)) if row.id != action.id
    ]
    books.gone(server, action_id=delete)
    assert books.read(audit.read).servers == {}
    assert books.read(audit.named, [server.uuid, "nobody"])[server.uuid].deleted
    hold(books, server.uuid, VCPU=1)
    [found] = differences(books)
    assert found.kind is Kind.ALLOCATION_ORPHAN and "a server that is deleted" in found.text
    assert books.write(audit.settle, server.uuid)
    assert books.held(server.uuid) == {}


@pytest.mark.parametrize(
    "break_it",
    [
        lambda books, uuid: drop(books, uuid),
        lambda books, uuid: books.execute(sa.update(_al).values(used=_al.c.used + 1)),
        lambda books, uuid: hold(books, uuid, node="h2", VCPU=1),
        lambda books, uuid: books.execute(sa.update(_al).values(node="h2")),
        lambda books, uuid: books.execute(sa.update(_i).values(vcpus=7)),
    ],
    ids=["missing", "amount", "second node", "other node", "size"],
)
def test_a_difference_is_repaired_once(books, break_it):
    server, _ = books.active()
    break_it(books, server.uuid)
    [found] = differences(books)
    assert books.write(audit.settle, str(found.instance_uuid))
    assert differences(books) == []
    assert books.held(server.uuid) == {"h1": RESOURCES}
    assert not books.write(audit.settle, server.uuid)


def test_nobody_holds_nothing(books):
    hold(books, "nobody", VCPU=1, DISK_GB=3)
    assert [found.kind for found in differences(books)] == [Kind.ALLOCATION_ORPHAN]
    assert books.write(audit.settle, "nobody")
    assert books.held("nobody") == {}


def test_what_is_in_work_is_not_repaired(books):
    server, _ = books.begun()
    drop(books, server.uuid)
    assert differences(books) == []
    assert not books.write(audit.settle, server.uuid)
    assert not books.write(audit.clean_up, orphan_guest(server, "h2"))
    active, _ = books.active(reservation_id="r2")
    drop(books, active.uuid)
    assert len(differences(books)) == 1
    books.delete(active.uuid)
    assert not books.write(audit.settle, active.uuid)
    assert books.held(active.uuid) == {}


def test_a_repair_sees_what_was_committed_after_its_first_statement(books):
    server, _ = books.active()
    drop(books, server.uuid)

    def meanwhile(conn):
        conn.execute(sa.update(_i).where(_i.c.uuid == server.uuid).values(action_id=99))

    assert not books.write(lambda conn: audit.settle(Overtaken(conn, meanwhile), server.uuid))


class TestCleanUp:
    def test_a_guest_elsewhere_goes_by_a_clean_up(self, books):
        server, _ = books.active()
        assert books.write(audit.clean_up, orphan_guest(server, "h2", attempt=3))
        assert books.cleanups(server.uuid) == {"h2": 3}

    def test_a_guest_that_another_attempt_has_made_here(self, books):
        server, _ = books.active()
        assert books.write(audit.clean_up, orphan_guest(server, attempt=2))

    def test_the_servers_own_guest_stays(self, books):
        server, _ = books.active()
        assert not books.write(audit.clean_up, orphan_guest(server))
        assert books.cleanups(server.uuid) == {}

    def test_a_guest_of_nobody_stays(self, books):
        server, _ = books.active()
        server.uuid = "nobody"
        assert not books.write(audit.clean_up, orphan_guest(server))


def test_the_conductor_repairs_and_tells(books, caplog):
    server, _ = books.active()
    assert conductor_audit.run(books.database) == 0
    drop(books, server.uuid)
    hold(books, "nobody", VCPU=1)
    assert conductor_audit.run(books.database) == 2
    told = [record.getMessage() for record in caplog.records]
    assert sorted(text.split(":")[0] for text in told) == ["Put right", "Put right"]
    assert any(f"server {server.uuid} on node h1 has no allocation" in text for text in told)
    assert conductor_audit.run(books.database) == 0


def test_a_repair_may_be_run_twice(books, monkeypatch):
    server, _ = books.active()
    drop(books, server.uuid)
    books.repeat_transactions(monkeypatch)
    assert conductor_audit.run(books.database) == 1
    assert books.held(server.uuid) == {"h1": RESOURCES}
