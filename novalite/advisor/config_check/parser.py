# SPDX-License-Identifier: Apache-2.0
"""Configuration files as lines: every setting with the file and the line where it stands.

oslo.config reads the same files and forgets the lines. The grammar here is oslo's; but what it
cannot read is noted and passed over, so that one slip does not hide the others. Called by the
configuration check, which never changes a file.
"""

from dataclasses import dataclass, field
from pathlib import Path

from novalite.conf import files
from novalite.conf.files import ConfigError


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting: ``name`` and ``section`` as they are written, ``value`` as oslo reads it."""

    file: str
    line: int
    section: str
    name: str
    value: str

    @property
    def key(self) -> tuple[str, str]:
        """Section and name as oslo looks for them."""
        return normal(self.section), self.name

    @property
    def where(self) -> str:
        """File and line for people."""
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that cannot be read; its text is not kept, since it may be a password."""

    file: str
    line: int
    text: str


@dataclass(slots=True)
class Parsed:
    """What stands in some files, in their order; ``headers`` are (file, line, section)."""

    entries: list[Entry] = field(default_factory=list)
    headers: list[tuple[str, int, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def normal(section: str) -> str:
    """Return a section's name without its case, which does not count but for DEFAULT."""
    return section if section == "DEFAULT" else section.lower()


def read(paths: list[str]) -> Parsed:
    """Return what stands in these files.

    :raises ConfigError: a file cannot be read
    """
    parsed = Parsed()
    for path in paths:
        _Reader(path, parsed).read(_text(path))
    return parsed


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


class _Reader:
    """Reads one file line by line."""

    def __init__(self, path: str, parsed: Parsed):
        self._path = path
        self._parsed = parsed
        self._section: str | None = None
        # The setting that further, indented lines may continue: line, name, values.
        self._open: tuple[int, str, list[str]] | None = None

    def read(self, text: str) -> None:
        if text.startswith(files.MARK):
            self._fault(1, files.MARKED)
            text = text.removeprefix(files.MARK)
        for number, raw in enumerate(text.split("\n"), start=1):
            self._line(number, raw.rstrip())
        self._close()

    def _line(self, number: int, line: str) -> None:
        if line.startswith((" ", "\t")):
            if self._open is None:
                self._fault(number, "this indented line continues nothing; remove the blanks")
            else:
                self._open[2].append(line.lstrip())
            return
        self._close()
        if line.startswith("["):
            self._header(number, line)
        elif line and not line.startswith(("#", ";")):
            self._setting(number, line)

    def _header(self, number: int, line: str) -> None:
        if not line.endswith("]") or len(line) <= 2:
            self._fault(number, "a section is written [NAME], with nothing behind it")
            # What follows is not looked up in the section before.
            self._section = line.strip("[] ")
            return
        self._section = line[1:-1]
        self._parsed.headers.append((self._path, number, self._section))

    def _setting(self, number: int, line: str) -> None:
        marks = [at for at in (line.find("="), line.find(":")) if at >= 0]
        if not marks:
            self._fault(number, "no '=' found; a line is OPTION = VALUE, [SECTION] or # comment")
            return
        name, value = line[: min(marks)].strip(), line[min(marks) + 1 :].strip()
        if not name:
            self._fault(number, "there is no name before the '='")
            return
        if self._section is None:
            self._fault(number, "this option stands before the first [SECTION]")
            return
        if value and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        self._open = (number, name, [value])

    def _close(self) -> None:
        if self._open is not None and self._section is not None:
            line, name, values = self._open
            entry = Entry(self._path, line, self._section, name, "\n".join(values))
            self._parsed.entries.append(entry)
        self._open = None

    def _fault(self, number: int, text: str) -> None:
        self._parsed.faults.append(Fault(self._path, number, text))
