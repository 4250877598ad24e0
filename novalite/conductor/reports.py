# SPDX-License-Identifier: Apache-2.0
"""One report of a compute: the heartbeat and all its items in one transaction.

An item or picture that fails must not take the others with it. They hardly ever fail, so all are
tried without savepoints first; only if one does, the transaction is repeated with a savepoint each.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlalchemy as sa
from oslo_config import cfg

from novalite import exception, log
from novalite.db import (
    attempts,
    compute_nodes,
    deletes,
    failures,
    instances,
    ownership,
    schema,
    services,
)
from novalite.db.engine import Database
from novalite.objects import build
from novalite.objects.compute_node import ComputeNode
from novalite.objects.states import Verdict

LOG = log.get(__name__)

_i = schema.instances
_POWER = (
    sa.update(_i)
    .where(
        _i.c.uuid == sa.bindparam("uuid_"),
        _i.c.host == sa.bindparam("host_"),
        _i.c.action_id.is_(None),
    )
    .values(power_state=sa.bindparam("power_"))
)


class _BrokenPart(Exception):
    """A part of a report cannot be taken; the text is the name of the error behind it."""


@contextlib.contextmanager
def _part(conn: sa.Connection, savepoint: bool) -> Iterator[None]:
    """One item or picture of a report; with a savepoint its failure undoes nothing else.

    :raises _BrokenPart: it cannot be taken. Trouble of the database itself is raised as it comes.
    """
    try:
        if savepoint:
            with conn.begin_nested():
                yield
        else:
            yield
    except sa.exc.OperationalError:
        raise
    except (sa.exc.StatementError, LookupError, TypeError, ValueError) as error:
        raise _BrokenPart(type(error).__name__) from error


@dataclass(slots=True)
class Taken:
    """What came of a report: the answer, and the reservations that wait for a conductor now."""

    answer: build.ReportAnswer
    drive: list[str] = field(default_factory=list)
    began: bool = False
    finished: bool = False


class Reports:
    """Takes reports; holds nothing between them."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database):
        self.conf = conf
        self._database = database

    @property
    def lease(self) -> float:
        """Seconds that begun work may go unnamed: two reports and a half."""
        return 2.5 * float(self.conf.report_interval)

    def take(self, report: build.Report) -> Taken:
        """Process one report in one transaction.

        :raises exception.DatabaseUnavailable: nothing was taken; the sender asks again
        """
        try:
            return self._database.transaction(lambda conn: self._take(conn, report, False))
        except _BrokenPart:
            return self._database.transaction(lambda conn: self._take(conn, report, True))

    def _take(self, conn: sa.Connection, report: build.Report, savepoints: bool) -> Taken:
        if not services.heartbeat(conn, report.host, report.binary, report.epoch, report.counter):
            return Taken(self._unwelcome(conn, report))
        taken = Taken(build.ReportAnswer())
        attempts.touch(conn, report.host, report.in_hand, self.lease)
        pictures: dict[str, ComputeNode] = {}
        for envelope in report.items:
            item = envelope.item
            picture = getattr(item, "picture", None)
            if picture is not None:
                _newest(pictures, picture)
            taken.answer.answers.append(self._one(conn, report, envelope, taken, savepoints))
        for picture in pictures.values():
            self._save(conn, picture, savepoints)
        return taken

    def _unwelcome(self, conn: sa.Connection, report: build.Report) -> build.ReportAnswer:
        """Say why a report is not taken: an older start of the service, an unknown service, or
        one that was overtaken by a later report (then nobody waits for the answer)."""
        known = services.find(conn, report.host, report.binary)
        if known is None:
            return build.ReportAnswer(unknown=True)
        return build.ReportAnswer(retired=known.epoch > report.epoch)

    def _one(
        self,
        conn: sa.Connection,
        report: build.Report,
        envelope: build.Envelope,
        taken: Taken,
        savepoints: bool,
    ) -> build.Answer:
        try:
            with _part(conn, savepoints):
                outcome = self._apply(conn, report, envelope.item)
        except _BrokenPart as error:
            if not savepoints:
                raise
            LOG.exception("An item of host %s could not be taken", report.host)
            return build.Answer(envelope.key, error=str(error))
        taken.drive += outcome.drive
        taken.began |= isinstance(envelope.item, build.Begin)
        taken.finished |= isinstance(envelope.item, build.Finish)
        return build.Answer(envelope.key, outcome.verdict, outcome.reason)

    @staticmethod
    def _save(conn: sa.Connection, picture: ComputeNode, savepoints: bool) -> None:
        """Write a picture; one that cannot be written costs the host neither items nor life."""
        try:
            with _part(conn, savepoints):
                compute_nodes.save(conn, picture)
        except exception.Conflict as error:
            LOG.error("A picture of host %s is refused: %s", picture.host, error.message())
        except _BrokenPart:
            if not savepoints:
                raise
            LOG.exception("A picture of host %s could not be taken", picture.host)

    def _apply(
        self, conn: sa.Connection, report: build.Report, item: build.ReportItem
    ) -> ownership.Outcome:
        most = int(self.conf.scheduler.max_attempts)
        host, epoch = report.host, report.epoch
        if isinstance(item, build.Begin):
            return attempts.begin(conn, host, epoch, item, self.lease, most)
        if isinstance(item, build.Finish):
            return attempts.finish(conn, host, epoch, item, most)
        if isinstance(item, build.Progress):
            return attempts.progress(conn, host, epoch, item)
        if isinstance(item, build.Refusal):
            return failures.refuse(conn, host, epoch, item, most)
        if isinstance(item, build.Gone):
            verdict, reason = deletes.gone(conn, host, item)
            return ownership.Outcome(verdict, reason)
        if isinstance(item, build.PowerReport):
            conn.execute(
                _POWER,
                {"uuid_": item.instance_uuid, "host_": host, "power_": int(item.power_state)},
            )
        return ownership.Outcome(Verdict.DONE)


def _newest(pictures: dict[str, ComputeNode], picture: ComputeNode) -> None:
    """Keep the newest picture of each node of a report; only that one is written."""
    former = pictures.get(picture.hypervisor_hostname)
    if former is None or picture.generation.newer_than(former.generation):
        pictures[picture.hypervisor_hostname] = picture


def kept(conn: sa.Connection, host: str) -> build.Registration:
    """Return what the database says a host has to keep, for its registration."""
    a = schema.instance_actions
    registration = build.Registration()
    rows = conn.execute(sa.select(_i).where(_i.c.host == host, ~_i.c.deleted))
    for row in rows:
        # One that was never built is kept if its delete has failed: what is left here is counted.
        at_rest = row.built_action is not None or row.action_id is None
        if at_rest and row.vm_state != "building":
            registration.kept.append(build.Kept(instances.from_row(row), row.built_attempt or 0))
    registration.open = [
        row.instance_uuid
        for row in conn.execute(
            sa.select(a.c.instance_uuid).where(
                a.c.target_host == host, a.c.state == "running", a.c.action == "create"
            )
        )
    ]
    registration.node_uuids = compute_nodes.uuids_of(conn, host)
    return registration
