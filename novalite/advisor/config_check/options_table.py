# SPDX-License-Identifier: Apache-2.0
"""The options that Nova and its libraries know, from the table that tools/nova_options.py writes.

Used by the configuration check to tell an option of Nova that novalite does not have from a typing
error. Facts only: section, name, type and former names. It never decides what an option means.
"""

import fnmatch
import functools
import importlib.resources
from dataclasses import dataclass, field

FILE = "nova_options.txt"
# Stands in a name for anything.
ANY = "*"


@dataclass(frozen=True, slots=True)
class NovaOption:
    """One option of Nova; ``kind`` is bool, int, float, str, list, multi or port."""

    section: str
    name: str
    kind: str

    def text(self) -> str:
        """Return section and name as they are written."""
        return f"[{self.section}] {self.name}"


@dataclass(slots=True)
class Table:
    """All options by section and name, and the former names of each."""

    options: dict[str, dict[str, NovaOption]] = field(default_factory=dict)
    former: dict[tuple[str, str], NovaOption] = field(default_factory=dict)

    def find(self, section: str, name: str) -> NovaOption | None:
        """Return the option of this present name, or None."""
        return self._section(section).get(name)

    def family(self, section: str, name: str) -> NovaOption | None:
        """Return what stands for a family of names that this one belongs to, or None."""
        for pattern, option in self._section(section).items():
            if ANY in pattern and fnmatch.fnmatchcase(name, pattern):
                return option
        return None

    def renamed(self, section: str, name: str) -> NovaOption | None:
        """Return the option of which this is a former name."""
        return self.former.get((section, name))

    def has_section(self, section: str) -> bool:
        """Tell whether Nova or one of its libraries has such a section."""
        return bool(self._section(section))

    def names(self, section: str) -> list[str]:
        """Return the present names in a section."""
        return [name for name in self._section(section) if ANY not in name]

    def _section(self, section: str) -> dict[str, NovaOption]:
        for pattern, names in self.options.items():
            if fnmatch.fnmatchcase(section, pattern):
                return names
        return {}


def parse(text: str) -> Table:
    """Return the table that *text* holds."""
    table = Table()
    section = ""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = _normal(line[1:-1])
            table.options[section] = {}
            continue
        name, kind, *former = line.split()
        option = NovaOption(section, name, kind)
        table.options[section][name] = option
        for old in former:
            old_section, _, old_name = old.partition("/")
            table.former.setdefault((_normal(old_section), old_name), option)
    return table


def _normal(section: str) -> str:
    # As oslo looks for sections: without their case, but for DEFAULT.
    return section if section == "DEFAULT" else section.lower()


@functools.cache
def load() -> Table:
    """Return the table that comes with the program."""
    return parse(importlib.resources.files(__package__).joinpath(FILE).read_text("utf-8"))
