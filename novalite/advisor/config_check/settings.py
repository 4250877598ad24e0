# SPDX-License-Identifier: Apache-2.0
"""Which setting of several is in force, and what it means as a value.

oslo.config's order: of several files the last one that has the option counts, in it the present
name before former ones, and of two lines with the same name the later. Used by the rules of the
configuration check and by its explanations.
"""

from typing import Any

from oslo_config import cfg

from novalite.advisor.config_check.known import Known, Own
from novalite.advisor.config_check.parser import Entry, Parsed, normal
from novalite.conf import files


class Settings:
    """The settings of some files under novalite's options."""

    def __init__(self, parsed: Parsed, known: Known):
        self._known = known
        self._entries: dict[tuple[str, str], list[Entry]] = {}
        for entry in parsed.entries:
            own = known.find(entry)
            if own is not None:
                key = normal(own.section), own.opt.dest
                self._entries.setdefault(key, []).append(entry)
        self.known = known

    def all(self, section: str, name: str) -> list[Entry]:
        """Return every setting of an option, under whatever name, in the order of reading."""
        return self._entries.get((normal(section), name), [])

    def entry(self, section: str, name: str) -> Entry | None:
        """Return the setting that is in force, None if no file sets the option."""
        found = self.all(section, name)
        if not found:
            return None
        last = [entry for entry in found if entry.file == found[-1].file]
        opt = self.own(section, name).opt
        names = [(normal(section), opt.dest)]
        names += [(normal(old.group or section), old.name or opt.dest) for old in _old(opt)]
        first = min(last, key=lambda entry: names.index(entry.key)).key
        return [entry for entry in last if entry.key == first][-1]

    def own(self, section: str, name: str) -> Own:
        """Return an option by its present name."""
        return self._known.own[normal(section), name]

    def value(self, section: str, name: str) -> Any:
        """Return the value in force; None if it is wrong, or refers to another option."""
        own, entry = self.own(section, name), self.entry(section, name)
        if own.opt.multi and entry is not None:
            return [converted(own.opt, each.value) for each in self.all(section, name)]
        return own.default if entry is None else converted(own.opt, entry.value)

    def is_set(self, section: str, name: str) -> bool:
        """Tell whether any file sets the option."""
        return bool(self.all(section, name))


def _old(opt: cfg.Opt) -> list[Any]:
    return list(opt.deprecated_opts)


def converted(opt: cfg.Opt, raw: str) -> Any:
    """Return a value as the option means it; None if it does not allow it."""
    if "$" in raw:
        return None
    try:
        value = opt.type(raw)
    except (ValueError, TypeError):
        return None
    return value if files.is_usable(opt, value) else None
