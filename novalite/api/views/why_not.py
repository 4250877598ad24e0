# SPDX-License-Identifier: Apache-2.0
"""What the filters say of hosts for one server, as JSON, with or without hosts and numbers.

Assembles; the words and sums are those of novalite/objects.
"""

from typing import Any

from novalite.objects import advice, decision, verdict
from novalite.objects.inquiry import Examination, HostVerdict
from novalite.objects.reason import WORDS

Json = dict[str, Any]


def show(server: Any, found: Examination, *, admin: bool) -> Json:
    """Return the body.

    :param server: the server's row
    :param admin: with hosts and numbers
    """
    made = found.decision
    shown: Json = {
        "server": {"id": server.uuid, "name": server.display_name},
        "host_details": admin,
        "decision": made.admin_view() if admin else made.tenant_view(),
    }
    if not admin:
        shown["summary"] = f"{advice.counted(made)}."
        shown["hosts"] = [_tenants_host(each) for each in found.hosts]
        return {"why_not": shown}
    shown["server"] |= {"host": server.host, "node": server.node}
    shown["summary"] = _summary(found)
    shown["hosts"] = [
        _host(each, found, here=server.node == each.node and server.host == each.host)
        for each in found.hosts
    ]
    shown["picture_age"] = made.picture_age
    return {"why_not": shown}


def _summary(found: Examination) -> str:
    made = found.decision
    if len(found.hosts) == 1:
        return f"{verdict.sentence(found.hosts[0], made.survivors)}."
    fits = sum(each.fits for each in found.hosts)
    takes = advice.times(fits, "host would take it", "hosts would take it")
    return f"Of {advice.times(len(found.hosts), 'host', 'hosts')} {takes}: {made.summary()}."


def _host(each: HostVerdict, found: Examination, *, here: bool) -> Json:
    made = found.decision
    # Of a resource that is refused the reason itself tells what is negative.
    others = [reason for reason in each.room if not reason.code.startswith("not_enough_")]
    more = [f"{text[:1].upper()}{text[1:]}." for text in verdict.negative(others)]
    if here:
        more.insert(0, "The server is on this host already, and counted in what is used there.")
    if each.selected:
        servers = advice.times(each.selected, "server was", "servers were")
        more.append(f"{servers} chosen for it and counted that its picture does not name yet.")
    if not each.fits and not each.skipped:
        more.append(
            f"If the request names it (availability_zone {each.zone}:{each.host}), filters are "
            "skipped and no limits are set: while it is up, the hypervisor alone decides."
        )
    return {
        "host": each.host,
        "node": each.node,
        "zone": each.zone,
        "picture": each.picture,
        "selected": each.selected,
        "fits": each.fits,
        "here": here,
        "skipped": each.skipped,
        "summary": f"{verdict.sentence(each, made.survivors)}.",
        "more": more,
        "passed": each.passed,
        "reasons": [
            {"filter": name} | decision.reason_view(reason) for name, reason in each.reasons
        ],
        "changes": [change.view() for change in verdict.changes(each)],
        "resources": verdict.resources(each.room),
        "rank": each.rank,
        "weights": [made.weighed_view(row) for row in each.weighed],
    }


def _tenants_host(each: HostVerdict) -> Json:
    """Return the kinds of reasons alone."""
    codes = [reason.code if reason.code in WORDS else "other" for _name, reason in each.reasons]
    return {"fits": each.fits, "codes": list(dict.fromkeys(codes))}
