# SPDX-License-Identifier: Apache-2.0
"""Why an attempt to build a server failed: from the error that its host told to a code and words.

The error itself names hosts, paths and options, so it is for administrators; the code and its
words are for everybody. Pure.
"""

import re
from typing import NamedTuple


class Failure(NamedTuple):
    """A kind of failure.

    ``words`` say it to everybody, after "the host" or "every host". ``advice`` is what an
    administrator may change; ``{host}`` in it is where.
    """

    code: str
    words: str
    advice: str


CPU = Failure(
    "cpu_not_supported",
    "cannot give the guest the CPU that is asked for",
    "set [libvirt] cpu_mode = none on {host} (or custom, with cpu_models that its CPU has) and "
    "send SIGHUP to novalite-compute there",
)
NO_ROOM = Failure(
    "claim_refused",
    "had no room for it any more when it was asked",
    "make room on {host}: its own books are what counts, and they were fuller than the "
    "scheduler's picture of it",
)
GROUP = Failure(
    "group_policy",
    "was not allowed by the policy of its server group, as another member was placed meanwhile",
    "nothing is wrong with {host}: create members one after the other, or raise [scheduler] "
    "max_attempts; more members than hosts need a soft policy",
)
NETWORK = Failure(
    "network_failed",
    "got no port for it from the network service",
    "look into the network service and its agent on {host}, where the port was to be bound",
)
IMAGE = Failure("image_failed", "could not read the image", "look into the image service")
VOLUME = Failure(
    "volume_failed",
    "could not get a volume that it needs",
    "look at the volume that the error names, and into the block storage service",
)
NEIGHBOR = Failure(
    "neighbor_failed",
    "was let down by another service that it needs",
    "look into the service that the error names",
)
HYPERVISOR = Failure(
    "hypervisor_failed",
    "could not start the guest",
    "look into the hypervisor's log on {host}; the error is what it says",
)
UNEXPECTED = Failure(
    "unexpected_error",
    "failed in a way that nobody expected",
    "read the traceback in the log of novalite-compute on {host}; this is a bug",
)
OTHER = Failure("failed", "failed", "read the log of novalite-compute on {host}")

_PATTERNS: tuple[tuple[str, Failure], ...] = (
    (r"host CPU|CPU is incompatible|cpu_mode", CPU),
    (r"^Insufficient compute resources", NO_ROOM),
    (r"instance group policy was violated", GROUP),
    (r"^Binding failed|The network service|^Port |^Network ", NETWORK),
    (r"The image service|^Image ", IMAGE),
    (r"^Invalid volume|^Volume |^Could not find a handler", VOLUME),
    (r"^The \w+ service", NEIGHBOR),
    (r"^Hypervisor error|^Domain of instance", HYPERVISOR),
    (r"^Unexpected error", UNEXPECTED),
)
_COMPILED = [(re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _PATTERNS]
KINDS: dict[str, Failure] = {
    kind.code: kind
    for kind in (
        *(CPU, NO_ROOM, GROUP, NETWORK, IMAGE, VOLUME, NEIGHBOR, HYPERVISOR, UNEXPECTED, OTHER),
    )
}


def of(error: str) -> Failure:
    """Return what kind of failure an error is."""
    for pattern, kind in _COMPILED:
        if pattern.search(error):
            return kind
    return OTHER
