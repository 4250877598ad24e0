# SPDX-License-Identifier: Apache-2.0
"""Host aggregates as JSON."""

from typing import Any

from novalite.api import times
from novalite.db.aggregates import AggregateRecord


def created(record: AggregateRecord, version: int) -> dict[str, Any]:
    """Return an aggregate as in the answer to its create: as yet without hosts and metadata."""
    aggregate = record.aggregate
    shown: dict[str, Any] = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": aggregate.zone,
        "created_at": times.micro(record.created_at),
        "updated_at": times.micro(record.updated_at),
        "deleted": False,
        "deleted_at": None,
    }
    return shown | {"uuid": aggregate.uuid} if version >= 41 else shown


def detail(record: AggregateRecord, version: int) -> dict[str, Any]:
    """Return the whole aggregate; its zone is among the metadata too."""
    metadata = dict(record.aggregate.metadata)
    return created(record, version) | {"hosts": record.hosts, "metadata": metadata}
