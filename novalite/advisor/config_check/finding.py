# SPDX-License-Identifier: Apache-2.0
"""One finding of the configuration check, and what its rules are given. Pure data."""

from collections.abc import Iterator
from dataclasses import dataclass

from novalite.advisor.config_check.parser import Entry
from novalite.advisor.config_check.settings import Settings

# An error: a service does not start, or refuses the value. A warning: it does something else than
# is written, or something dangerous.
ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong at one line; ``code`` is for programs, ``text`` for people."""

    severity: str
    code: str
    file: str
    line: int
    section: str
    option: str
    text: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What the host has: MB, threads, GB; None where nobody said."""

    memory_mb: int | None = None
    vcpus: int | None = None
    local_gb: int | None = None


def at(entry: Entry | None, severity: str, code: str, text: str) -> Iterator[Finding]:
    """Yield a finding at the line of a setting; none if there is no such line."""
    if entry is not None:
        yield Finding(severity, code, entry.file, entry.line, entry.section, entry.name, text)


def set_at(settings: Settings, section: str, *names: str) -> Entry | None:
    """Return the setting of the first of these options that a file sets."""
    found = (settings.entry(section, name) for name in names)
    return next((entry for entry in found if entry is not None), None)
