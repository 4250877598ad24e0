# SPDX-License-Identifier: Apache-2.0
"""Times as the API writes and reads them; inside they are seconds since the epoch, UTC."""

import datetime
import time

from novalite import exception

_UTC = datetime.UTC


def zulu(moment: float | None) -> str | None:
    """Return ``2026-01-31T12:00:00Z``: whole seconds, for created and updated of servers."""
    if moment is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def micro(moment: float | None) -> str | None:
    """Return ``2026-01-31T12:00:00.000000``: microseconds and no zone, for everything else."""
    if moment is None:
        return None
    stamp = datetime.datetime.fromtimestamp(moment, _UTC).replace(tzinfo=None)
    return stamp.isoformat(timespec="microseconds")


def parse(name: str, text: str) -> float:
    """Read an ISO 8601 time; without an offset it is UTC.

    A blank before the offset is taken for the plus sign that a URL turned into it.

    :raises exception.ValidationError: it is no time
    """
    words = text.strip()
    if len(words) > 6 and words[-6] == " ":
        words = f"{words[:-6]}+{words[-5:]}"
    try:
        stamp = datetime.datetime.fromisoformat(words)
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=_UTC)
        return stamp.timestamp()
    except (ValueError, OverflowError) as error:
        raise exception.ValidationError(
            detail=f"Invalid input for query parameters {name}. Value: {text[:64]}. "
            f"'{text[:64]}' is not a 'date-time'"
        ) from error


def span(since: str | None, before: str | None) -> tuple[float | None, float | None]:
    """Read changes-since and changes-before, each of which may be absent.

    :raises exception.ValidationError: one of them is no time
    :raises exception.InvalidInput: they leave no time between them
    """
    first = None if since is None else parse("changes-since", since)
    last = None if before is None else parse("changes-before", before)
    if first is not None and last is not None and first > last:
        raise exception.InvalidInput(
            "The value of changes-since must be less than or equal to changes-before."
        )
    return first, last
