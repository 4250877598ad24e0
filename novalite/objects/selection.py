# SPDX-License-Identifier: Apache-2.0
"""The messages between conductor and scheduler; one call carries the requests of many servers."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.decision import Decision
from novalite.objects.request_spec import RequestSpec, Selection

NO_VALID_HOST = "no_valid_host"
FAILED = "failed"


@base.register
@dataclass(slots=True)
class SelectRequest:
    """Hosts are wanted for all servers of one reservation, or for none of them.

    ``specs`` has one entry a server. ``unused`` are servers (uuid) whose former selection is not
    going to be used: it no longer counts on its host, and the hosts are read anew before this
    answer. ``key`` is made by the sender and names the answer. ``context`` is the user's
    RequestContext as a dict: the scheduler logs with it.
    """

    VERSION: ClassVar[str] = "1.0"

    key: int
    specs: list[RequestSpec]
    unused: list[str] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)


@base.register
@dataclass(slots=True)
class SelectAnswer:
    """The hosts for one request, or why there are none.

    ``selections`` has one list a server, in the order asked: the chosen host, then alternates.
    ``decisions`` goes with it; without hosts it holds the decision of the server that found none.
    ``error`` is None, ``no_valid_host``, or ``failed`` when the scheduler itself could not decide
    (a broken filter); ``reason`` is the text for the user. ``only_compute_filter`` tells that
    hosts that are down or disabled were the only trouble, ``recently_seen`` that one of the hosts
    that are down was heard from less than twice service_down_time ago, so that trying again soon
    makes sense. ``settling`` tells that the scheduler itself has just been started or cut off, so
    that hosts which are down may only not have been heard yet.
    """

    VERSION: ClassVar[str] = "1.1"

    key: int
    selections: list[list[Selection]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    error: str | None = None
    reason: str = ""
    only_compute_filter: bool = False
    recently_seen: bool = False
    settling: bool = False
