# SPDX-License-Identifier: Apache-2.0
"""What this process has done so far, counted; SIGUSR2 writes it to the log.

Counts are the process's, as its log is, so they are kept in one place instead of being carried
through every constructor.
"""

from collections import Counter

_counts: Counter[str] = Counter()


def add(name: str) -> None:
    """Count one more."""
    _counts[name] += 1


def snapshot() -> dict[str, int]:
    """Return all counts by name."""
    return dict(sorted(_counts.items()))
