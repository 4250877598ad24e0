# SPDX-License-Identifier: Apache-2.0
import sqlite3
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import pytest

from novalite.neighbors import store as store_module
from novalite.neighbors.store import Store, StoreLocked


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "deep" / "neighbors.db")
    yield made
    made.close()


def port(record_id: str, **values: str) -> dict[str, str]:
    return {"id": record_id, "name": "", "project_id": "p", "network_id": "n", **values}


def test_records_are_found_by_their_columns(store: Store) -> None:
    with store.write() as tx:
        tx.insert("port", port("1", device_id="d", name="x"))
        tx.insert("port", port("2", device_id="", network_id="m"))
    with store.read() as tx:
        assert tx.get("port", "1") == port("1", device_id="d", name="x")
        assert [doc["id"] for doc in tx.find("port", owner="p")] == ["1", "2"]
        assert [doc["id"] for doc in tx.find("port", parent="m")] == ["2"]
        assert [doc["id"] for doc in tx.find("port", attached="d")] == ["1"]
        assert [doc["id"] for doc in tx.find("port", attached="")] == ["2"]
        assert [doc["id"] for doc in tx.find("port", id=["2", "1", "9"])] == ["1", "2"]
        assert tx.count("port", name="x") == 1
        with pytest.raises(ValueError, match="no column colour"):
            tx.find("port", colour="red")


def test_a_change_moves_the_columns_too(store: Store) -> None:
    with store.write() as tx:
        doc = tx.insert("port", port("1", device_id="d"))
        tx.replace("port", {**doc, "device_id": "e"})
        assert tx.find("port", attached="d") == []
        assert len(tx.find("port", attached="e")) == 1


def test_look_ups_use_an_index(store: Store) -> None:
    with store.read() as tx:
        for column in ("id", "name", "owner", "parent", "attached"):
            sql, values = store_module._where("port", {column: "x"})
            plan = tx.run(f"EXPLAIN QUERY PLAN SELECT doc FROM records WHERE {sql}", *values)
            assert f"records_{column}" in str(plan.fetchall()), column


def test_an_error_undoes_the_transaction(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError), store.write() as tx:
        tx.insert("port", port("1"))
        tx.insert("port", port("1"))
    with store.read() as tx:
        assert tx.get("port", "1") is None


def test_writers_take_turns(store: Store) -> None:
    with store.write() as tx:
        tx.insert("quota", {"id": "q", "project_id": "q", "count": 0})

    def add(_number: int) -> None:
        with store.write() as tx:
            doc = tx.get("quota", "q")
            assert doc is not None
            tx.replace("quota", {**doc, "count": doc["count"] + 1})

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(100)))
    with store.read() as tx:
        found = tx.get("quota", "q")
    assert found is not None and found["count"] == 100


def test_another_process_with_the_lock_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT", 0.0)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked, match=r"neighbors\.db"), store.write():
        pass
    other.execute("ROLLBACK")
    with store.write() as tx:
        tx.insert("port", port("1"))
    other.close()


def test_nobody_else_can_read_the_file(store: Store) -> None:
    assert store.path.stat().st_mode & 0o077 == 0
    assert store.files.stat().st_mode & 0o077 == 0
