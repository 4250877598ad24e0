# SPDX-License-Identifier: Apache-2.0
"""The conductor's life: what it does about its own record in the services table."""

from types import SimpleNamespace

import pytest

from novalite import exception
from novalite.conductor import manager as manager_module
from novalite.db import services

BINARY = "nova-conductor"


class Bus:
    """Makes clients that nobody uses here."""

    def __init__(self, conf):
        self.conf = conf

    def client(self, target, version_cap=None):
        return None


class Away:
    """A database that cannot be reached for the next ``times`` transactions."""

    def __init__(self, database, times):
        self._database = database
        self.times = times
        self.read = database.read

    def transaction(self, work):
        if self.times:
            self.times -= 1
            raise exception.DatabaseUnavailable()
        return self._database.transaction(work)


@pytest.fixture
def conductor(books, monkeypatch):
    """A conductor whose database is away at first, with what it needs to be looked at."""
    monkeypatch.setattr(manager_module, "DATABASE_RETRY", 0.0)
    database, failures = Away(books.database, 2), []
    made = manager_module.ConductorManager(books.conf, Bus(books.conf), database, failures.append)
    yield SimpleNamespace(manager=made, database=database, failures=failures)
    made.drain(5.0)


def record(books):
    return books.database.read(lambda conn: services.find(conn, books.conf.host, BINARY))


def report(conductor):
    """Do what the periodic task does."""
    conductor.manager._report_state()


def test_the_start_waits_for_the_database(books, conductor):
    conductor.manager.init_host()
    assert conductor.database.times == 0
    assert record(books).epoch == 1
    report(conductor)
    assert record(books).report_count == 1


def test_a_record_that_was_deleted_is_made_anew(books, conductor):
    conductor.manager.init_host()
    books.database.transaction(lambda conn: services.delete(conn, record(books)))
    assert record(books) is None
    report(conductor)
    assert record(books) is not None
    assert conductor.failures == []


def test_a_newer_start_ends_this_one(books, conductor):
    conductor.manager.init_host()
    books.database.transaction(
        lambda conn: services.register(conn, books.conf.host, BINARY, "conductor", "")
    )
    report(conductor)
    assert conductor.failures == [
        f"another conductor was started under the host name {books.conf.host}"
    ]
