# SPDX-License-Identifier: Apache-2.0
"""The plainest possible scheduler: one host after the other, nothing kept, Nova's sums.

It is the oracle for everything that is kept or cut short, and what the benchmark compares with.
"""

from collections import Counter

from novalite.objects import decision as decisions
from novalite.objects.decision import Decision, FilterCount, Miss, Weighed
from novalite.objects.reason import room_reasons


def decide(hosts, demand, filters, weighers, count=5, rooms=None):
    """Return the indexes of the best hosts and the decision, but for what the pipeline adds.

    :param rooms: returns the rooms of the chosen host
    """
    weighers = [weigher for weigher in weighers if weigher.applies(demand)]
    survivors, misses = [], []
    for index, host in enumerate(hosts):
        refusal = refuses(host, demand, filters)
        if refusal is None:
            survivors.append(index)
        else:
            misses.append((index, *refusal))
    totals, raw, shares = weigh([hosts[index] for index in survivors], demand, weighers)
    ranked = sorted(range(len(survivors)), key=totals.__getitem__, reverse=True)[:count]
    order = [survivors[position] for position in ranked]
    chosen = hosts[order[0]] if order else None
    decision = Decision(
        hosts=len(hosts),
        survivors=len(survivors),
        need=demand.need,
        host=chosen.host if chosen else None,
        node=chosen.node if chosen else None,
        filters=counts(len(hosts), filters, misses),
        misses=nearest(hosts, demand, filters, misses, 4 if order else decisions.NEAREST),
        weighers=[(weigher.name, weigher.multiplier) for weigher in weighers],
        weights=[
            Weighed(
                hosts[survivors[position]].host,
                hosts[survivors[position]].node,
                round(totals[position], 6),
                [round(column[position], 6) for column in raw],
                [round(column[position], 6) for column in shares],
                picture(hosts[survivors[position]]),
                multipliers(hosts[survivors[position]], weighers),
            )
            for position in ranked[: decisions.TOP]
        ],
        room=room_reasons(chosen.picture, rooms(chosen), demand.need) if chosen and rooms else [],
    )
    return order, decision


def refuses(host, demand, filters):
    """Return the place of the first filter that refuses, with its reason."""
    for place, checked in enumerate(filters):
        reason = checked.examine(host, demand) if checked.applies(demand) else None
        if reason is not None:
            return place, reason
    return None


def weigh(hosts, demand, weighers):
    """Return totals, raw and normalised weights."""
    totals, raw, shares = [0.0] * len(hosts), [], []
    for weigher in weighers:
        column = [0.0] * len(hosts)
        share = [0.0] * len(hosts)
        if hosts:
            column = weigher.column(hosts, demand)
            low = min(column) if weigher.minval is None else weigher.minval
            column = [max(weight, low) for weight in column]
            high = max(column) if weigher.maxval is None else weigher.maxval
            column = [min(weight, high) for weight in column]
            if high != low and len(hosts) > 1:
                share = [(weight - low) / (high - low) for weight in column]
        for position, host in enumerate(hosts):
            totals[position] += weigher.multiplier_on(host) * share[position]
        raw.append(column)
        shares.append(share)
    return totals, raw, shares


def multipliers(host, weighers):
    """Return the multipliers in force on a host if they are not the usual ones."""
    here = [weigher.multiplier_on(host) for weigher in weighers]
    return None if here == [weigher.multiplier for weigher in weighers] else here


def counts(left, filters, misses):
    """Return how many hosts each filter let through."""
    found = []
    for place, checked in enumerate(filters):
        codes = Counter(reason.code for _index, at, reason in misses if at == place)
        end = left - sum(codes.values())
        found.append(FilterCount(checked.name, left, end, dict(sorted(codes.items()))))
        left = end
    return found


def nearest(hosts, demand, filters, misses, count):
    """Return the misses that came nearest, those of unknown distance last."""

    def distance(miss):
        index, _place, reason = miss
        found = reason.distance()
        return (float("inf") if found is None else found, index)

    shown = []
    for index, place, _reason in sorted(misses, key=distance)[:count]:
        host = hosts[index]
        reasons = [
            (checked.name, reason)
            for checked in filters[place:]
            if checked.applies(demand) and (reason := checked.examine(host, demand)) is not None
        ]
        shown.append(Miss(host.host, host.node, reasons, picture(host)))
    return shown


def picture(host):
    return f"{host.picture.generation.epoch}.{host.picture.generation.counter}"
