# SPDX-License-Identifier: Apache-2.0
"""Pictures of nodes: only newer ones are taken, and a reader learns what changed since its mark."""

import pytest

from novalite import exception
from novalite.db import compute_nodes
from novalite.db.compute_nodes import OVERLAP, SETTLED
from tests.unit.db.books import picture


def save(books, *args, **kwargs):
    return books.write(compute_nodes.save, picture(*args, **kwargs))


def read(books, since, known=None):
    records, mark = books.read(compute_nodes.pictures, since, known)
    return [node for node, _ in records], mark


class TestSave:
    def test_the_first_one_makes_the_node(self, books):
        books.register()
        assert save(books, vcpus_used=2)
        (record,) = books.read(compute_nodes.list_all)
        assert (record.node.host, record.node.vcpus_used) == ("h1", 2)
        assert record.service.host == "h1"
        assert books.read(compute_nodes.uuids_of, "h1") == {"h1": record.node.uuid}

    @pytest.mark.parametrize(
        ("epoch", "counter", "taken"),
        [(2, 6, True), (3, 1, True), (2, 5, False), (2, 4, False), (1, 9, False)],
    )
    def test_only_newer_ones_are_taken(self, books, epoch, counter, taken):
        books.register()
        save(books, epoch=2, counter=5, vcpus_used=1)
        assert save(books, epoch=epoch, counter=counter, vcpus_used=7) is taken
        (record,) = books.read(compute_nodes.list_all)
        assert record.node.vcpus_used == (7 if taken else 1)

    def test_the_node_keeps_its_uuid(self, books):
        books.register()
        save(books, counter=1)
        before = books.read(compute_nodes.uuids_of, "h1")
        save(books, counter=2)
        assert books.read(compute_nodes.uuids_of, "h1") == before

    def test_a_node_of_another_host_is_refused(self, books):
        books.register("h1")
        save(books, "h1", "n1")
        with pytest.raises(exception.Conflict, match="node n1 belongs to host h1, not to h2"):
            save(books, "h2", "n1", counter=9)

    def test_one_host_may_have_many_nodes(self, books):
        books.register("h1")
        save(books, "h1", "n1"), save(books, "h1", "n2")
        assert sorted(books.read(compute_nodes.uuids_of, "h1")) == ["n1", "n2"]


class TestPictures:
    def test_first_all_then_only_what_changed_since_the_mark(self, books):
        for host in ("h1", "h2"):
            books.register(host)
            save(books, host)
        books.clock.advance(OVERLAP + 1)
        nodes, mark = read(books, None)
        assert [node.host for node in nodes] == ["h1", "h2"]
        save(books, "h2", counter=2, vcpus_used=3)
        books.clock.advance(OVERLAP + 1)
        nodes, mark = read(books, mark)
        assert [(node.host, node.vcpus_used) for node in nodes] == [("h2", 3)]
        assert read(books, mark)[0] == []

    def test_what_was_stamped_shortly_before_the_mark_comes_again(self, books):
        books.register()
        save(books)
        _, mark = read(books, None)
        assert len(read(books, mark)[0]) == 1
        assert len(read(books, mark + OVERLAP + 1)[0]) == 0

    def test_a_change_of_the_service_counts(self, books):
        books.register()
        save(books)
        books.clock.advance(OVERLAP + 1)
        _, mark = read(books, None)
        assert read(books, mark)[0] == []
        books.register()
        assert len(read(books, mark)[0]) == 1

    def test_names_the_claims_that_came_into_the_books_since_the_mark(self, books):
        books.register()
        save(books)
        server, _ = books.begun(host="h1")
        books.clock.advance(OVERLAP + 1)
        nodes, mark = read(books, None)
        assert nodes[0].instances == [server.uuid]
        save(books, counter=2)
        later, _ = books.begun(host="h1")
        nodes, mark = read(books, mark)
        assert nodes[0].instances == [later.uuid]
        books.clock.advance(SETTLED + 1)
        assert read(books, None)[0][0].instances == []

    def test_a_known_picture_is_not_read_again(self, books):
        books.register()
        save(books)
        (node,), _ = read(books, None)
        known = {"h1": node}
        assert read(books, None, known)[0][0] is node
        save(books, counter=2, vcpus_used=5)
        (fresh,), _ = read(books, None, known)
        assert (fresh is node, fresh.vcpus_used) == (False, 5)

    def test_a_node_without_a_service_is_left_out(self, books):
        save(books)
        assert read(books, None)[0] == []
