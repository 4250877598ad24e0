# SPDX-License-Identifier: Apache-2.0
"""The invariants of the durable action protocol, as questions to a world and its books."""

from tests.unit.db.books import RESOURCES

_OWNER = (
    "SELECT vm_state, task_state, host, built_action, built_attempt FROM instances WHERE uuid = ?"
)
_OPEN = (
    "SELECT id, action, state, step, attempt, target_host, drives FROM instance_actions"
    " WHERE state IN ('pending', 'running')"
)
_BOOKS = (
    "SELECT i.uuid, i.host, i.node, i.deleted, i.action_id, i.vm_state,"
    " (SELECT count(*) FROM allocations l WHERE l.consumer = i.uuid),"
    " (SELECT count(*) FROM allocations l WHERE l.consumer = i.uuid AND l.node = i.node),"
    " (SELECT count(*) FROM instance_actions a WHERE a.instance_uuid = i.uuid"
    "   AND a.state IN ('pending', 'running')),"
    " (SELECT a.id FROM instance_actions a WHERE a.instance_uuid = i.uuid"
    "   AND a.state IN ('pending', 'running'))"
    " FROM instances i"
)


def two_guests(world):
    """Never two running guests on hosts that are reachable or could have fenced themselves."""
    running = {}
    for host in world.hosts.values():
        if host.state == "up" and not (host.partitioned and not host.fenced):
            for uuid, domain in host.domains.items():
                if domain.running:
                    running.setdefault(uuid, []).append(f"{host.name} attempt {domain.attempt}")
    for uuid, where in running.items():
        if len(where) > 1:
            return f"two running guests of {uuid}: {where}"
    return None


class Owner:
    """The server's row, as far as the invariants read it."""

    def __init__(self, view, uuid):
        row = view.execute(_OWNER, (uuid,)).fetchone()
        self.vm_state, self.task_state, self.host, *built = row
        self.built = tuple(built)


def wrong_destroy(view, host, uuid):
    """The guest of an ACTIVE server is never destroyed except by a delete."""
    domain = host.domains.get(uuid)
    if domain is None:
        return None
    row = Owner(view, uuid)
    its = row.built == (domain.action, domain.attempt)
    if row.vm_state == "active" and row.host == host.name and its and row.task_state != "deleting":
        return f"the guest of ACTIVE {uuid} is destroyed on {host.name}"
    return None


def books_disagree(view):
    """In every committed state: host and allocations go together, and so do the open action and
    the server's pointer to it."""
    for row in view.execute(_BOOKS):
        uuid, host, _node, deleted, action_id, state, held, here, open_actions, open_id = row
        on_host = host is not None and not deleted
        if held != (len(RESOURCES) if on_host else 0) or held != here and on_host:
            return f"{uuid} is {state} on {host} and holds {held} allocations, {here} there"
        if open_actions > 1 or open_id != action_id:
            return f"{uuid} points to action {action_id}, open is {open_id}"
    return None


def unrest(world):
    """Say what is not at rest, or None."""
    due = world.view.execute(_OPEN).fetchall()
    if due:
        return f"open: {due}"
    for host in world.hosts.values():
        if host.state == "starting" and not host.partitioned:
            return f"{host.name} starts"
        if host.reachable and (host.works or host.gone or host.fenced):
            return f"{host.name} has {host.works} {host.gone}"
    left = [
        host
        for (host,) in world.view.execute("SELECT host FROM cleanups")
        if world.hosts[host].reachable
    ]
    if left:
        return f"clean-ups at {left}"
    if [m for m in world.bus if m.kind in ("build", "destroy") and world.hosts[m.host].reachable]:
        return "messages under way"
    return None


def at_rest(world):
    return unrest(world) is None


def final(world, uuid):
    """At rest: ACTIVE with one guest on instances.host, or ERROR or DELETED with none."""
    row = Owner(world.view, uuid)
    guests = {
        host.name: host.domains[uuid]
        for host in world.hosts.values()
        if host.reachable and uuid in host.domains
    }
    if row.vm_state == "active":
        if row.task_state or not row.host:
            return f"ACTIVE with task {row.task_state} on {row.host}"
        if not world.hosts[row.host].reachable:
            return f"guests elsewhere: {guests}" if guests else None
        if list(guests) != [row.host]:
            return f"ACTIVE on {row.host}, guests at {guests}"
        domain = guests[row.host]
        if not (domain.running and domain.done):
            return f"ACTIVE with the guest {domain}"
        if (domain.action, domain.attempt) != row.built:
            return f"ACTIVE by {row.built} with {domain}"
        return None
    if row.vm_state not in ("error", "deleted"):
        return f"state {row.vm_state} at rest"
    if row.vm_state == "error" and row.host:
        return f"ERROR on host {row.host}"
    if guests:
        return f"{row.vm_state} with guests {guests}"
    return None
