# SPDX-License-Identifier: Apache-2.0
"""The configuration check: what in an operator's files is wrong, without effect or dangerous.

Called by ``novalite-status config check``. It reads the files, never the machine, the bus or the
database, and changes nothing. An unchanged nova.conf is welcome: Nova's options that novalite does
not have are counted and told apart from typing errors.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from novalite.advisor.config_check import parser, rules
from novalite.advisor.config_check.finding import ERROR, WARNING, Finding, Totals
from novalite.advisor.config_check.known import Known, Own
from novalite.advisor.config_check.options_table import NovaOption
from novalite.advisor.config_check.parser import Entry, Parsed
from novalite.advisor.config_check.settings import Settings, converted
from novalite.conf import files

SUCCESS, WARNINGS, ERRORS = 0, 1, 2
_REFERENCE = re.compile(r"\$\{?([A-Za-z_.0-9]*)")
# What oslo.config takes for a boolean.
_BOOLEANS = ("true", "1", "on", "yes", "false", "0", "off", "no")
_PLAIN = {"bool": "true or false", "int": "a whole number", "float": "a number", "port": "a port"}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A setting of an option that Nova has and novalite has not; it has no effect here."""

    file: str
    line: int
    option: str


@dataclass(slots=True)
class Report:
    """What the check found, in the order of files and lines."""

    files: list[str]
    settings: int = 0
    findings: list[Finding] = field(default_factory=list)
    foreign: list[Foreign] = field(default_factory=list)

    @property
    def code(self) -> int:
        """The exit code: 0 nothing found, 1 warnings, 2 errors."""
        found = {finding.severity for finding in self.findings}
        return ERRORS if ERROR in found else WARNINGS if found else SUCCESS

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON primitives."""
        return {
            "files": self.files,
            "settings": self.settings,
            "findings": [asdict(finding) for finding in self.findings],
            "without_effect": [asdict(foreign) for foreign in self.foreign],
            "exit_code": self.code,
        }


def check(paths: list[str], known: Known, totals: Totals) -> Report:
    """Check these files, read in this order as a service reads them.

    :param totals: what the host has, as far as it is known
    :raises ConfigError: a file cannot be read
    """
    parsed = parser.read(paths)
    report = Report(paths, len(parsed.entries))
    for fault in parsed.faults:
        report.findings.append(Finding(ERROR, "syntax", fault.file, fault.line, "", "", fault.text))
    report.findings.extend(_sections(parsed, known))
    report.findings.extend(_twice(parsed, known))
    report.findings.extend(_circles(parsed, known))
    for entry in parsed.entries:
        if known.has_section(entry.section):
            _entry(entry, known, report)
    settings = Settings(parsed, known)
    report.findings.extend(rules.run(settings, totals))
    order = {path: index for index, path in enumerate(paths)}
    report.findings.sort(key=lambda each: (order.get(each.file, len(paths)), each.line))
    return report


def _sections(parsed: Parsed, known: Known) -> Iterator[Finding]:
    for file, line, section in parsed.headers:
        if known.has_section(section):
            continue
        near = known.nearest_section(section)
        text = "neither novalite nor Nova has such a section; nothing in it is read"
        text += f"; did you mean [{near}]?" if near else ""
        yield Finding(WARNING, "unknown-section", file, line, section, "", text)


def _twice(parsed: Parsed, known: Known) -> Iterator[Finding]:
    """Tell of two lines in one file that set the same option to different values."""
    seen: dict[tuple[str, tuple[str, str]], Entry] = {}
    for entry in parsed.entries:
        own = known.find(entry)
        if own is None or own.opt.multi:
            continue
        key = entry.file, (own.section, own.opt.dest)
        former = seen.setdefault(key, entry)
        if former is entry or former.value == entry.value:
            continue
        if former.key == entry.key:
            text = f"set in line {former.line} too, to another value; this line counts"
            seen[key] = entry
        else:
            wins = former if not _is_former(former, known) else entry
            text = f"line {former.line} sets {own.text} too; line {wins.line} counts"
        yield _of(entry, WARNING, "set-twice", text)


def _is_former(entry: Entry, known: Known) -> bool:
    own = known.find(entry)
    return own is not None and own.former


def _entry(entry: Entry, known: Known, report: Report) -> None:
    own = known.find(entry)
    if own is not None:
        report.findings.extend(_own(entry, own, known))
        return
    nova = known.of_nova(entry.section, entry.name)
    if nova is not None:
        report.foreign.append(Foreign(entry.file, entry.line, nova.text()))
        report.findings.extend(_nova(entry, nova))
        return
    renamed = known.renamed(entry.section, entry.name)
    if renamed is None:
        if known.is_of_a_family(entry.section, entry.name):
            report.foreign.append(
                Foreign(entry.file, entry.line, f"[{entry.section}] {entry.name}")
            )
        else:
            report.findings.append(_unknown(entry, known))
        return
    ours, theirs = renamed
    if ours is None:
        report.foreign.append(Foreign(entry.file, entry.line, theirs.text()))
        return
    text = f"a former name that novalite does not read: it has no effect; write {ours.text}"
    report.findings.append(_of(entry, WARNING, "deprecated", text))


def _own(entry: Entry, own: Own, known: Known) -> Iterator[Finding]:
    if own.former:
        text = f"a former name; write {own.text}"
        yield _of(entry, WARNING, "deprecated", text)
    for reference in _references(entry.value):
        if _referred(reference, entry.section, known) is None:
            text = "refers with $ to an option that does not exist; write $$ for a dollar sign"
            yield _of(entry, ERROR, "reference", text)
    if "$" in entry.value:
        return
    if converted(own.opt, entry.value) is None:
        shown = "***" if own.opt.secret else files.short(entry.value)
        text = f"{shown!r} is not valid; allowed: {files.allowed(own.opt)}"
        if " #" in entry.value:
            text += "; a comment needs a line of its own"
        yield _of(entry, ERROR, "wrong-value", text)
    elif " #" in entry.value:
        text = "what follows # on the same line is part of the value; give comments their own line"
        yield _of(entry, WARNING, "comment", text)


def _circles(parsed: Parsed, known: Known) -> Iterator[Finding]:
    """Tell of options whose references lead back to them; of several lines, the last counts."""
    places: dict[tuple[str, str], Entry] = {}
    refers: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in parsed.entries:
        own = known.find(entry)
        if own is None:
            continue
        found = (_referred(name, entry.section, known) for name in _references(entry.value))
        key = own.section, own.opt.dest
        places[key] = entry
        refers[key] = [(target.section, target.opt.dest) for target in found if target is not None]
    for key, entry in places.items():
        if files.is_circular(key, refers):
            yield _of(entry, ERROR, "reference", f"refers with $ to {files.ITSELF}")


def _references(value: str) -> list[str]:
    return _REFERENCE.findall(value.replace("$$", "").replace("\\$", ""))


def _referred(reference: str, here: str, known: Known) -> Own | None:
    """Return the option that a reference means, None if there is none."""
    section, _, name = reference.rpartition(".")
    places = [section] if section else [here, "DEFAULT"]
    keys = [(parser.normal(place), name) for place in places]
    return next((known.own[key] for key in keys if key in known.own), None)


def _nova(entry: Entry, nova: NovaOption) -> Iterator[Finding]:
    value, kind = entry.value.strip(), nova.kind
    if "$" in value or not value:
        return
    good = {
        "bool": lambda: value.lower() in _BOOLEANS,
        "int": lambda: re.fullmatch(r"[+-]?\d+", value) is not None,
        "port": lambda: value.isdigit() and int(value) < 65536,
        "float": lambda: re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) is not None,
    }.get(kind)
    if good is not None and not good():
        text = f"not valid in Nova either, which takes {_PLAIN[kind]}; novalite does not have it"
        yield _of(entry, WARNING, "wrong-value", text)


def _unknown(entry: Entry, known: Known) -> Finding:
    text = "neither novalite nor Nova has such an option"
    elsewhere = known.elsewhere(entry.name)
    if elsewhere:
        text = f"not an option of this section; write it as {' or '.join(elsewhere[:3])}"
        return _of(entry, WARNING, "wrong-section", text)
    near = known.nearest(entry.section, entry.name)
    text += f"; did you mean {near}?" if near else ""
    return _of(entry, WARNING, "unknown-option", text)


def _of(entry: Entry, severity: str, code: str, text: str) -> Finding:
    name = files.short(entry.name)
    return Finding(severity, code, entry.file, entry.line, entry.section, name, text)
