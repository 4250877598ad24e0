# SPDX-License-Identifier: Apache-2.0
"""A database on a clock of the test's own, with short words for what API, conductor and computes
write into it."""

import contextlib
import itertools
import uuid

import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy import event

import novalite.conf
from novalite import context as context_module
from novalite.db import actions, attempts, builds, deletes, failures, instances, schema, services
from novalite.db.engine import Database
from novalite.objects import build
from novalite.objects.action import ActionEvent
from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance, InstanceFault
from novalite.objects.request_spec import Generation, RequestSpec

MAX_ATTEMPTS = 3
RESOURCES = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}
FLAVOR = Flavor("1", "m1.nano", 1, 64, 1)
_numbers = itertools.count(1)


class Clock:
    """The database's clock; like a real one it never shows the same moment twice."""

    def __init__(self, moment=1_700_000_000.0):
        self.moment = moment

    def __call__(self):
        self.moment += 0.0002
        return self.moment

    def advance(self, seconds):
        self.moment += seconds

    def julianday(self, _when):
        return self() / 86400.0 + 2440587.5


def make_conf(directory, **options):
    """Make a configuration; options as group__name=value."""
    conf = cfg.ConfigOpts()
    novalite.conf.register_opts(conf)
    conf([], project="novalite", default_config_files=[], default_config_dirs=[])
    conf.set_override("state_path", str(directory))
    for name, value in options.items():
        group, _, option = name.rpartition("__")
        conf.set_override(option, value, group or None)
    return conf


def put_on_clock(database, clock):
    """Let ``now()`` of this SQLite database be *clock*."""

    def connect(connection, _record):
        connection.create_function("julianday", 1, clock.julianday)

    for engine in (database._engine, database._writer):
        event.listen(engine, "connect", connect)


def open_books(conf):
    """Make a database with all tables on a clock of its own."""
    database, clock = Database(conf), Clock()
    put_on_clock(database, clock)
    schema.metadata.create_all(database.engine)
    return Books(conf, database, clock)


def context(**values):
    values = {"user_id": "alice", "project_id": "p1", "overwrite": False} | values
    return context_module.RequestContext(**values)


def new_server(reservation_id="r1", **values):
    """Return a server and its request, not stored yet."""
    number = next(_numbers)
    server = Instance(
        uuid=str(uuid.uuid4()),
        project_id="p1",
        user_id="alice",
        display_name=f"server{number}",
        flavor=FLAVOR,
        reservation_id=reservation_id,
        image_ref="image",
        created_at=1.0,
        **values,
    )
    return server, RequestSpec(server.uuid, "p1", "alice", FLAVOR)


def picture(host="h1", node=None, epoch=1, counter=1, **values):
    values = {"vcpus": 8, "memory_mb": 16384, "local_gb": 200} | values
    return ComputeNode(host, node or host, generation=Generation(epoch, counter), **values)


def step(name="build", host="h1", **values):
    return ActionEvent(name, host=host, start=10.0, **values)


class Overtaken:
    """A connection whose transaction is overtaken by another one after its first statement, as a
    database server with READ COMMITTED allows."""

    def __init__(self, conn, meanwhile):
        self._conn, self._meanwhile = conn, meanwhile

    def __getattr__(self, name):
        return getattr(self._conn, name)

    def execute(self, *args):
        result = self._conn.execute(*args)
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            result = result.freeze()() if result.returns_rows else result
            meanwhile(self._conn)
        return result


class Books:
    """Each method is one transaction."""

    def __init__(self, conf, database, clock):
        self.conf, self.database, self.clock = conf, database, clock
        self.counter = itertools.count(1)

    def empty(self):
        """Delete every row."""
        raw = self.database.engine.raw_connection()
        for table in schema.metadata.sorted_tables:
            raw.execute(f"DELETE FROM {table.name}")
        raw.close()

    def close(self):
        for engine in (self.database._engine, self.database._writer):
            engine.dispose()

    def write(self, function, *args, **kwargs):
        return self.database.transaction(lambda conn: function(conn, *args, **kwargs))

    def roll_back(self, work):
        """Run a transaction as if its commit met a deadlock."""

        class Deadlock(Exception):
            pass

        def doomed(conn):
            work(conn)
            raise Deadlock

        with contextlib.suppress(Deadlock):
            type(self.database).transaction(self.database, doomed)

    def repeat_transactions(self, monkeypatch):
        """From now on each transaction meets a deadlock and is run again."""
        once = self.database.transaction

        def repeated(work):
            self.roll_back(work)
            return once(work)

        monkeypatch.setattr(self.database, "transaction", repeated)

    def read(self, function, *args, **kwargs):
        return self.database.read(lambda conn: function(conn, *args, **kwargs))

    # -- the API's part

    def create(self, *servers, grace=3.0, **values):
        wanted = list(servers) or [new_server(**values)]
        self.write(builds.create, context(), wanted, grace=grace)
        return wanted[0][0] if len(wanted) == 1 else [server for server, _ in wanted]

    def delete(self, uuid, **values):
        return self.write(deletes.open_delete, context(), uuid, lease=10.0, **values)

    # -- the conductor's part

    def take(self, reservations=("r1",), owner=None, lease=15.0):
        owner = owner or f"conductor:{next(self.counter)}"
        return self.write(builds.take, list(reservations), owner, lease)

    def start(self, taken, host="h1", args=None, lease=10.0):
        return self.write(builds.start, taken, host, host, args or {}, lease)

    # -- a compute's part

    def register(self, host="h1", identity="", binary="nova-compute"):
        return self.write(services.register, host, binary, "compute", identity)

    def begin(self, action, attempt=1, token="t1", host="h1", epoch=1, **values):
        item = self.begin_item(action, attempt, token, host, **values)
        return self.write(attempts.begin, host, epoch, item, 25.0, MAX_ATTEMPTS)

    @staticmethod
    def begin_item(action, attempt=1, token="t1", host="h1", **values):
        return build.Begin(
            action.id,
            attempt,
            token,
            action.instance_uuid,
            host,
            dict(RESOURCES),
            picture(host),
            **values,
        )

    def refuse(self, action, attempt=1, token="t1", host="h1", epoch=1, stale=False, **values):
        item = build.Refusal(
            action.id,
            attempt,
            token,
            action.instance_uuid,
            host,
            "Free memory 0.00 MB < requested 64 MB",
            stale,
            picture(host),
            **values,
        )
        return self.write(failures.refuse, host, epoch, item, MAX_ATTEMPTS)

    def finish(self, action, attempt=1, token="t1", host="h1", epoch=1, fault=None, **values):
        if isinstance(fault, str):
            fault = InstanceFault(500, fault)
        item = build.Finish(
            action.id,
            attempt,
            token,
            action.instance_uuid,
            host,
            picture(host),
            fault=fault,
            **values,
        )
        return self.write(attempts.finish, host, epoch, item, MAX_ATTEMPTS)

    def progress(self, action, attempt=1, token="t1", host="h1", epoch=1, **values):
        item = build.Progress(action.id, attempt, token, action.instance_uuid, **values)
        return self.write(attempts.progress, host, epoch, item)

    @staticmethod
    def in_hand(action, attempt=1):
        return build.InHand(action.id, attempt)

    def gone(self, server, host="h1", **values):
        return self.write(
            deletes.gone, host, build.Gone(server.uuid, host, picture(host), **values)
        )

    # -- ways to a state

    def started(self, host="h1", **values):
        """Return (server, action) of a build that was cast to *host*."""
        server = self.create(**values)
        (taken,) = self.take([server.reservation_id])
        return server, self.start(taken, host).action

    def begun(self, host="h1", token="t1", epoch=1, **values):
        """Return (server, action) of a build that has begun on *host*."""
        server, action = self.started(host, **values)
        self.begin(action, token=token, host=host, epoch=epoch)
        return server, action

    def active(self, host="h1", token="t1", epoch=1, **values):
        """Return (server, action) of a server that is ACTIVE on *host*."""
        server, action = self.begun(host, token, epoch, **values)
        self.finish(action, token=token, host=host, epoch=epoch)
        return server, action

    def restart(self, action, host, **values):
        """Start the next attempt of a build that waits."""
        (taken,) = self.take([action.reservation_id])
        return self.start(taken, host, **values).action

    # -- looks

    def server(self, uuid):
        return self.read(instances.get, uuid, read_deleted=True)

    def action(self, action_id):
        return self.read(actions.get, action_id)

    def events(self, action_id):
        return self.read(actions.events, action_id)

    def fault(self, uuid):
        return self.read(instances.last_fault, uuid)

    def held(self, uuid):
        """Return what the server holds: {node: {class: amount}}."""
        t = schema.allocations
        found = {}
        for row in self.rows(sa.select(t).where(t.c.consumer == uuid)):
            found.setdefault(row.node, {})[row.resource_class] = row.used
        return found

    def cleanups(self, uuid):
        """Return {host: highest attempt that may be destroyed there}."""
        t = schema.cleanups
        rows = self.rows(sa.select(t).where(t.c.instance_uuid == uuid))
        return {row.host: row.attempt for row in rows}

    def rows(self, statement):
        return self.database.read(lambda conn: conn.execute(statement).all())

    def execute(self, statement):
        return self.database.transaction(lambda conn: conn.execute(statement).rowcount)

    def waits(self, action_id):
        """Tell whether the build waits for a conductor."""
        action = self.action(action_id)
        return (action.state, action.step, action.target_host) == ("pending", "scheduling", None)
