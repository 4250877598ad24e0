# SPDX-License-Identifier: Apache-2.0
"""Values that nobody changes and that can be hashed, for what is kept and compared. Pure."""

from typing import Any


class FrozenDict(dict[str, Any]):
    """A dict that nobody changes, so it may be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash that does not depend on the order of the keys."""
        return hash(frozenset(self.items()))


def freeze(value: Any) -> Any:
    """Return a value that can be hashed: lists as tuples, dicts as frozen ones, all the way."""
    if isinstance(value, dict):
        return FrozenDict((key, freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value
