# SPDX-License-Identifier: Apache-2.0
"""The host manager on a real database: only pictures that are newer are read."""

import pytest
from sqlalchemy import event

from novalite.db import compute_nodes, schema, services
from novalite.db.engine import Database
from novalite.scheduler.host_manager import HostManager, Settings
from tests.unit.scheduler import fakes
from tests.unit.scheduler.test_host_manager import Clock, read
from tests.unit.scheduler.test_manager import make_conf


@pytest.fixture
def database(tmp_path):
    made = Database(make_conf(state_path=str(tmp_path)))
    schema.metadata.create_all(made.engine)
    yield made
    made.engine.dispose()


@pytest.fixture
def manager(database):
    def load(mark, known):
        return database.read(lambda conn: compute_nodes.pictures(conn, mark, known))

    return HostManager(load, Settings(), clock=Clock())


def register(database, *hosts):
    for host in hosts:
        database.transaction(
            lambda conn, host=host: services.register(conn, host, "nova-compute", "compute", host)
        )


def save(database, *nodes):
    for node in nodes:
        database.transaction(lambda conn, node=node: compute_nodes.save(conn, node))


def test_only_newer_pictures_are_read(database, manager):
    register(database, "h1", "h2")
    save(database, fakes.node("h1"), fakes.node("h2"))
    assert list(read(manager, manager._clock)) == ["h1", "h2"]
    fetched = []
    event.listen(
        database.engine,
        "before_cursor_execute",
        lambda conn, cursor, statement, parameters, *_: (
            fetched.append(parameters) if "WHERE compute_nodes.id IN" in statement else None
        ),
    )
    save(database, fakes.node("h2", counter=2, memory_mb_used=5000))
    hosts = read(manager, manager._clock)
    assert (hosts["h1"].free_ram_mb, hosts["h2"].free_ram_mb) == (15872, 11384)
    assert len(fetched) == 1
    assert len(fetched[0]) == 1
    read(manager, manager._clock, 60)
    assert len(fetched) == 1


def test_an_unchanged_picture_still_brings_the_services_news(database, manager):
    register(database, "h1")
    save(database, fakes.node("h1"))
    read(manager, manager._clock)
    database.transaction(
        lambda conn: conn.execute(
            schema.services.update().values(disabled=True, updated_at=schema.services.c.created_at)
        )
    )
    host = read(manager, manager._clock)["h1"]
    assert (host.disabled, host.up) == (True, True)


def test_a_node_of_the_same_name_made_anew_is_read(database, manager):
    register(database, "h1")
    save(database, fakes.node("h1", epoch=5, counter=5))
    read(manager, manager._clock)
    database.transaction(lambda conn: conn.execute(schema.compute_nodes.delete()))
    node = fakes.node("h1", epoch=5, counter=5, memory_mb_used=600)
    node.uuid = "another"
    save(database, node)
    assert read(manager, manager._clock)["h1"].picture.memory_mb_used == 600
