# SPDX-License-Identifier: Apache-2.0
"""Services: registration with its epochs and identities, heartbeats, and what is removed."""

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.db import builds, compute_nodes, schema, services
from tests.unit.db.books import picture


def find(books, host="h1", binary="nova-compute"):
    return books.read(services.find, host, binary)


def heartbeat(books, epoch, counter, host="h1"):
    return books.write(services.heartbeat, host, "nova-compute", epoch, counter)


class TestRegister:
    def test_each_start_is_one_more_epoch(self, books):
        assert [books.register().epoch for _ in range(3)] == [1, 2, 3]

    def test_counts_as_a_report_and_the_counter_begins_anew(self, books):
        books.register()
        heartbeat(books, 1, 7)
        books.clock.advance(100)
        service = books.register()
        assert (service.report_count, service.age) == (0, pytest.approx(0, abs=0.1))

    def test_each_kind_of_service_counts_by_itself(self, books):
        books.register()
        assert books.register(binary="nova-scheduler").epoch == 1
        assert books.register(host="h2").epoch == 1

    def test_keeps_what_the_operator_has_set(self, books):
        service = books.register()
        books.write(services.update, service.id, disabled=True, disabled_reason="disk")
        again = books.register()
        assert (again.disabled, again.disabled_reason, again.uuid) == (True, "disk", service.uuid)

    def test_another_identity_under_the_same_name_is_refused(self, books):
        books.register(identity="one")
        before = find(books)
        with pytest.raises(exception.Conflict) as caught:
            books.register(identity="two")
        assert caught.value.message() == (
            "host h1 is known with node identity one, but this process has two: the state "
            "directory is another one, or two hosts have one name"
        )
        after = find(books)
        assert (after.epoch, after.node_identity) == (before.epoch, "one")

    def test_a_renamed_host_is_refused(self, books):
        books.register("h1", identity="one")
        with pytest.raises(exception.Conflict) as caught:
            books.register("h2", identity="one")
        assert caught.value.message() == (
            "the node identity in this state directory belongs to host h1, not to h2: was the "
            "host renamed? Set host = h1, or use another state_path"
        )
        assert find(books, "h2") is None

    def test_hosts_with_identities_of_their_own_live_together(self, books):
        books.register("h1", identity="one")
        assert books.register("h2", identity="two").epoch == 1
        assert books.register("h1", identity="one", binary="nova-conductor").epoch == 1

    def test_an_identity_is_kept_and_learned(self, books):
        books.register()
        assert books.register(identity="one").node_identity == "one"
        assert books.register().node_identity == "one"


class TestHeartbeat:
    def test_stamps_by_the_databases_clock(self, books):
        books.register()
        books.clock.advance(50)
        assert heartbeat(books, 1, 1)
        service = find(books)
        assert (service.report_count, service.age) == (1, pytest.approx(0, abs=0.1))
        books.clock.advance(12.5)
        assert find(books).age == pytest.approx(12.5, abs=0.1)

    @pytest.mark.parametrize(
        ("epoch", "counter", "taken"),
        [(2, 6, True), (2, 5, False), (2, 4, False), (1, 6, False), (3, 6, False)],
    )
    def test_only_of_this_epoch_and_newer(self, books, epoch, counter, taken):
        books.register(), books.register()
        assert heartbeat(books, 2, 5)
        books.clock.advance(30)
        assert heartbeat(books, epoch, counter) is taken
        service = find(books)
        assert (service.epoch, service.report_count) == (2, 6 if taken else 5)
        assert service.age == pytest.approx(0 if taken else 30, abs=0.1)

    def test_of_one_service_of_a_host_only(self, books):
        books.register(), books.register(binary="nova-scheduler")
        heartbeat(books, 1, 3)
        assert find(books).report_count == 3
        assert find(books, binary="nova-scheduler").report_count == 0

    def test_of_an_unknown_service(self, books):
        assert not heartbeat(books, 1, 1)


class TestLists:
    def test_by_kind_and_in_order(self, books):
        books.register("b"), books.register("a"), books.register("b", binary="nova-scheduler")
        assert [s.host for s in books.read(services.list_all)] == ["b", "a", "b"]
        assert [s.host for s in books.read(services.list_all, "nova-compute")] == ["b", "a"]

    def test_get_by_id_and_uuid(self, books):
        service = books.register()
        assert books.read(services.get, service.id).uuid == service.uuid
        assert books.read(services.get, service.uuid).id == service.id
        with pytest.raises(exception.ServiceNotFound):
            books.read(services.get, 99)


class TestDelete:
    def test_takes_the_nodes_and_the_clean_ups_of_the_host_along(self, books):
        service = books.register()
        books.register("h2")
        for host in ("h1", "h2"):
            books.write(compute_nodes.save, picture(host))
            books.write(builds.add_cleanup, "some-server", host, host, 1)
        books.write(services.delete, service)
        assert find(books) is None
        assert [record.node.host for record in books.read(compute_nodes.list_all)] == ["h2"]
        assert books.cleanups("some-server") == {"h2": 1}

    def test_a_conductor_of_that_name_keeps_the_nodes(self, books):
        books.register()
        books.write(compute_nodes.save, picture())
        books.write(services.delete, books.register(binary="nova-conductor"))
        assert len(books.read(compute_nodes.list_all)) == 1

    @pytest.mark.parametrize("state", ["started", "begun", "active", "deleting"])
    def test_a_host_in_use_is_refused(self, books, state):
        service = books.register()
        server, _ = getattr(books, "active" if state == "deleting" else state)()
        if state == "deleting":
            books.delete(server.uuid)
        with pytest.raises(exception.ServiceInUse):
            books.write(services.delete, service)
        assert find(books) is not None

    def test_after_the_server_is_gone_it_is_not_in_use(self, books):
        service = books.register()
        server, _ = books.active()
        books.gone(server, action_id=books.delete(server.uuid).request.action_id)
        assert books.server(server.uuid).deleted
        books.write(services.delete, service)
        assert books.rows(sa.select(schema.services)) == []
