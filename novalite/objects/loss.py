# SPDX-License-Identifier: Apache-2.0
"""What got lost on the way of an action, and how it was driven on: codes and their words.

Recovery writes one as a step of the action's history, explanations read it. Pure data.
"""

# The step in the history; its details hold one of the codes below and a text for administrators.
EVENT = "conductor_recover"
# The step of a build that waits for a host or for a scheduler; tried again, it is written anew.
WAIT = "conductor_wait_for_host"

# More losses than this end an action.
MAX_DRIVES = 8

LEASE = "lease_lost"
SILENT = "host_silent"
NOT_BEGUN = "not_begun"
RECAST = "cast_again"
BEGUN_AGAIN = "begun_again"
FREED = "freed_without_host"

# For everybody: they name no host.
WORDS = {
    LEASE: "a control process died or was cut off; another one took over",
    SILENT: "the host fell silent; the work was taken from it",
    NOT_BEGUN: "the host did not begin; the work was taken from it",
    RECAST: "the host did not take the work in hand in time; it was told once more",
    BEGUN_AGAIN: "the host started over",
    FREED: "the host was silent; everything was freed without it",
}
OTHER = "something got lost; the work was driven on"


def words(code: str) -> str:
    """Return what a code says."""
    return WORDS.get(code, OTHER)
