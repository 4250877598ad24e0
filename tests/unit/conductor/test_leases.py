# SPDX-License-Identifier: Apache-2.0
"""Owner names of takes, and their renewal."""

import pytest

from novalite.conductor.leases import Leases


@pytest.fixture
def leases(books):
    return Leases(books.database, "c1", 15.0)


def left(books, server):
    return books.action(server.action_id).deadline - books.clock.moment


def test_each_take_has_a_name_of_its_own_even_after_a_restart(books, leases):
    names = {leases.new_owner() for _ in range(3)} | {
        Leases(books.database, "c1", 15.0).new_owner()
    }
    assert len(names) == 4


def test_what_is_held_is_renewed_until_it_is_dropped(books, leases):
    one, two = books.create(reservation_id="a"), books.create(reservation_id="b")
    first, second = leases.new_owner(), leases.new_owner()
    books.take(["a"], first), books.take(["b"], second)
    books.clock.advance(10)
    leases.drop(second)
    leases.renew()
    assert left(books, one) == pytest.approx(15, abs=0.1)
    assert left(books, two) == pytest.approx(5, abs=0.1)


def test_with_nothing_in_hand_there_is_no_transaction(books, leases, monkeypatch):
    monkeypatch.setattr(books.database, "transaction", lambda _work: pytest.fail("a transaction"))
    leases.drop(leases.new_owner())
    leases.drop("never there")
    leases.renew()
