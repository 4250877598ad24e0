# SPDX-License-Identifier: Apache-2.0
"""Do all books agree? Servers, allocations, nodes' records, trackers and guests, side by side.

``novalite-manage audit`` and the audits of conductors and computes bring what they have read, and
get the differences, each named in words and numbers with who may repair it. Pure. What is in work,
a server with an open action or a host that still has to clean up, is left out: it is about to
change, and its owner looks after it.
"""

from collections.abc import Iterable, Mapping

from novalite.objects import capacity
from novalite.objects.audit import (
    BookedClaim,
    Difference,
    Facts,
    FoundGuest,
    HostBooks,
    Kind,
    Record,
    Server,
    resources,
    words,
)
from novalite.objects.compute_node import NUMBERS, ComputeNode


def compare_database(facts: Facts) -> list[Difference]:
    """Compare the servers with their allocations and with what quotas count."""
    found: list[Difference] = []
    for server in facts.servers.values():
        if server.busy or server.deleted:
            continue
        if server.placed:
            found += _allocation(server, facts.allocations.get(server.uuid, {}))
        if server.counted != server.flavor:
            found.append(_size(server))
    for consumer, nodes in facts.allocations.items():
        owner = facts.servers.get(consumer)
        if owner is None or not (owner.busy or owner.placed):
            found += _orphans(consumer, owner, nodes)
    return found


def _allocation(server: Server, held: Mapping[str, Mapping[str, int]]) -> Iterable[Difference]:
    wanted = {str(server.node): resources(server.need)}
    found = {
        node: {name: used for name, used in amounts.items() if used}
        for node, amounts in held.items()
    }
    found = {node: amounts for node, amounts in found.items() if amounts}
    if found == {node: amounts for node, amounts in wanted.items() if amounts}:
        return
    where = f"server {server.uuid} on node {server.node}"
    needs = words(resources(server.need))
    if not found:
        kind = Kind.ALLOCATION_MISSING
        text = f"{where} has no allocation; it needs {needs}"
    else:
        kind = Kind.ALLOCATION_WRONG
        holds = "; ".join(f"{words(amounts)} on node {node}" for node, amounts in found.items())
        text = f"{where} needs {needs}; its allocation is {holds}"
    yield Difference(
        kind, text, wanted, found, instance_uuid=server.uuid, host=server.host, node=server.node
    )


def _size(server: Server) -> Difference:
    names = ("vcpus", "memory_mb")
    expected = dict(zip(names, server.flavor, strict=True))
    found = dict(zip(names, server.counted, strict=True))
    return Difference(
        Kind.SIZE_WRONG,
        f"server {server.uuid} counts as {words(found)}; its flavor has {words(expected)}",
        expected,
        found,
        instance_uuid=server.uuid,
    )


def _orphans(
    consumer: str, owner: Server | None, nodes: Mapping[str, Mapping[str, int]]
) -> Iterable[Difference]:
    for node, amounts in nodes.items():
        yield Difference(
            Kind.ALLOCATION_ORPHAN,
            f"{words(amounts)} on node {node} is allocated to {consumer}, {_whose(owner)}",
            {},
            dict(amounts),
            instance_uuid=consumer,
            node=node,
        )


def _whose(server: Server | None) -> str:
    if server is None:
        return "which is no server here"
    if server.deleted:
        return "a server that is deleted"
    if server.host is None:
        return f"a server ({server.vm_state}) that is on no host"
    return f"a server ({server.vm_state}) that is on node {server.node} of host {server.host}"


def compare_host(books: HostBooks, facts: Facts) -> list[Difference]:
    """Compare a compute's claims and guests with the servers, and its sums with its claims."""
    busy = set(books.busy)
    busy.update(server.uuid for server in facts.servers.values() if server.busy)
    busy.update(uuid for uuid, host in facts.cleanups if host == books.host)
    mine = {
        server.uuid: server
        for server in facts.servers.values()
        if server.placed and server.host == books.host and server.uuid not in busy
    }
    found = [each for picture in books.pictures for each in compare_sums(picture, books.claims)]
    found += _claims(books, facts, mine, busy)
    found += _guests(books, facts, mine, busy)
    return found


def compare_sums(picture: ComputeNode, claims: Iterable[BookedClaim]) -> Iterable[Difference]:
    """Compare what a node's picture says is used with its claims and what is reserved."""
    node = picture.hypervisor_hostname
    mine = [claim for claim in claims if claim.node == node]
    disk = capacity.whole_gb(picture.reserved_host_disk_mb)
    expected = {
        "vcpus_used": picture.reserved_host_cpus + sum(claim.vcpus for claim in mine),
        "memory_mb_used": picture.reserved_host_memory_mb
        + sum(claim.memory_mb + picture.guest_overhead_mb for claim in mine),
        "local_gb_used": disk + sum(claim.disk_gb for claim in mine),
        "running_vms": len(mine),
    }
    found = {name: getattr(picture, name) for name in expected}
    if found != expected:
        yield Difference(
            Kind.SUM_WRONG,
            f"node {node} says {words(found)}; what is reserved and its claims come to "
            f"{words(expected)}",
            expected,
            found,
            host=picture.host,
            node=node,
        )


def _claims(
    books: HostBooks, facts: Facts, mine: Mapping[str, Server], busy: set[str]
) -> Iterable[Difference]:
    missing = dict(mine)
    for claim in books.claims:
        if claim.instance_uuid in busy or not claim.settled:
            continue
        server = mine.get(claim.instance_uuid)
        amounts = words(resources(claim.need))
        if server is None or server.node != claim.node:
            whose = _whose(facts.servers.get(claim.instance_uuid))
            text = f"node {claim.node} counts {amounts} for {claim.instance_uuid}, {whose}"
            yield Difference(
                Kind.CLAIM_ORPHAN,
                text,
                {},
                resources(claim.need),
                instance_uuid=claim.instance_uuid,
                host=books.host,
                node=claim.node,
            )
            continue
        del missing[server.uuid]
        if claim.need != server.need:
            needs = words(resources(server.need))
            yield Difference(
                Kind.CLAIM_WRONG,
                f"node {claim.node} counts {amounts} for server {server.uuid}, which needs {needs}",
                resources(server.need),
                resources(claim.need),
                instance_uuid=server.uuid,
                host=books.host,
                node=claim.node,
            )
    for server in missing.values():
        yield Difference(
            Kind.CLAIM_MISSING,
            f"node {server.node} counts nothing for server {server.uuid}, which needs "
            f"{words(resources(server.need))}",
            resources(server.need),
            {},
            instance_uuid=server.uuid,
            host=books.host,
            node=server.node,
        )


def _guests(
    books: HostBooks, facts: Facts, mine: Mapping[str, Server], busy: set[str]
) -> Iterable[Difference]:
    missing = {uuid: server for uuid, server in mine.items() if server.vm_state == "active"}
    for guest in books.guests:
        if guest.instance_uuid in busy:
            continue
        server = mine.get(guest.instance_uuid)
        if server is not None and server.attempt in (None, guest.attempt):
            missing.pop(server.uuid, None)
            continue
        yield _orphan_guest(books.host, guest, facts.servers.get(guest.instance_uuid))
    for server in missing.values():
        yield Difference(
            Kind.GUEST_MISSING,
            f"server {server.uuid} is ACTIVE on host {books.host}, whose hypervisor has no guest "
            "of it",
            server.attempt,
            None,
            instance_uuid=server.uuid,
            host=books.host,
            node=server.node,
        )


def _orphan_guest(host: str, guest: FoundGuest, server: Server | None) -> Difference:
    whose = _whose(server)
    if server is not None and server.placed and server.host == host:
        whose = f"a server that attempt {server.attempt} has built"
    return Difference(
        Kind.GUEST_UNKNOWN if server is None else Kind.GUEST_ORPHAN,
        f"host {host} has a guest, made by attempt {guest.attempt}, of {guest.instance_uuid}, "
        f"{whose}",
        None,
        guest.attempt,
        instance_uuid=guest.instance_uuid,
        host=host,
        node=guest.node,
        attempt=guest.attempt,
    )


def compare_records(books: HostBooks, records: Mapping[str, Record]) -> list[Difference]:
    """Compare what a compute says of its nodes with the nodes' records."""
    found: list[Difference] = []
    for picture in books.pictures:
        node = picture.hypervisor_hostname
        record = records.get(node)
        if record is None or record.host != books.host:
            text = f"node {node} of host {books.host} has no record"
            found.append(Difference(Kind.RECORD_MISSING, text, host=books.host, node=node))
        else:
            found += _record(picture, record)
    known = {picture.hypervisor_hostname for picture in books.pictures}
    for node, record in records.items():
        if record.host == books.host and node not in known:
            text = f"node {node} has a record; host {books.host} has no such node any more"
            found.append(Difference(Kind.NODE_GONE, text, host=books.host, node=node))
    return found


def _record(picture: ComputeNode, record: Record) -> Iterable[Difference]:
    """A record may be older than the picture, but then it has to move on: its generation is in the
    mark, so that it is the same difference only while it does not."""
    node, generation = picture.hypervisor_hostname, record.picture.generation
    if generation.newer_than(picture.generation):
        return
    expected = {name: getattr(picture, name) for name in NUMBERS}
    stored = {name: getattr(record.picture, name) for name in NUMBERS}
    for what, numbers in (("record", record.numbers), ("stored picture", stored)):
        wrong = {name: numbers[name] for name in NUMBERS if numbers[name] != expected[name]}
        if wrong:
            right = {name: expected[name] for name in wrong}
            yield Difference(
                Kind.RECORD_WRONG,
                f"the {what} of node {node} says {words(wrong)}; its host says {words(right)}",
                right,
                wrong,
                host=picture.host,
                node=node,
                mark=generation.text(),
            )
            return
