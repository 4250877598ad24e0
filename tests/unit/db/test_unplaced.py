# SPDX-License-Identifier: Apache-2.0
"""Which servers are still to be placed."""

from novalite.db import instances


def test_only_builds_without_a_host_are_to_be_placed(books):
    waiting = books.create(reservation_id="waiting")
    started, _ = books.started(reservation_id="started")
    begun, _ = books.begun(reservation_id="begun")
    active, _ = books.active(reservation_id="active")
    gone = books.create(reservation_id="gone")
    books.delete(gone.uuid)
    everyone = [server.uuid for server in (waiting, started, begun, active, gone)]
    assert books.read(instances.unplaced, everyone) == {waiting.uuid, started.uuid}
    assert books.read(instances.unplaced, []) == set()
    assert books.read(instances.unplaced, everyone * 300) == {waiting.uuid, started.uuid}
