# SPDX-License-Identifier: Apache-2.0
"""The configuration files as text: which there are, and whether each value in them is allowed."""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from oslo_config import cfg, types

# How like a known name an unknown one must be to be taken for a slip of the pen. Sections are
# shared with other programs, so most unknown names are none of our business.
_SLIP = 0.9
_LONGEST = 200
_REFERENCE = re.compile(r"\$\{?([A-Za-z_.0-9]*)")
# What an option refers to that can have no value.
ITSELF = "itself, by way of others perhaps, so that it has no value"
# Some editors write it before the first line, where nobody sees it.
MARK = "\ufeff"
MARKED = "begins with a byte order mark; save the file as UTF-8 without one"
T = TypeVar("T")
Names = dict[str, cfg.Opt]
Known = dict[str, Names]


class ConfigError(Exception):
    """The options are not usable; the text is one line for the user and holds no secret."""


def named(argv: list[str]) -> list[str]:
    """Return the files that ``--config-file`` and ``--config-dir`` name, in their order.

    :raises ConfigError: a directory does not exist
    """
    paths: list[str] = []
    for index, word in enumerate(argv):
        option, equals, value = word.partition("=")
        if len(option) <= len("--config-"):
            continue
        if not equals and index + 1 < len(argv):
            value = argv[index + 1]
        # The parser of the command line takes a shortened option too.
        if "--config-file".startswith(option):
            paths.append(value)
        elif "--config-dir".startswith(option):
            folder = Path(value).expanduser()
            if not folder.is_dir():
                raise ConfigError(f"configuration directory {value} does not exist")
            paths.extend(str(path) for path in sorted(folder.glob("*.conf")))
    return paths


def registered(conf: cfg.ConfigOpts) -> Iterator[tuple[str, cfg.Opt]]:
    """Yield (section, option) for everything registered on *conf*."""
    # oslo.config has no public way to ask for the Opt objects, which know what is allowed.
    for info, group in conf._all_opt_infos():
        if not isinstance(info["opt"], cfg.SubCommandOpt):
            yield (group.name if group else "DEFAULT"), info["opt"]


def check(paths: list[str], conf: cfg.ConfigOpts) -> tuple[list[str], dict[cfg.Opt, str]]:
    """Check every value of every file against the options registered on *conf*.

    :returns: warnings about names that look like a slip of the pen, and for each value that
        refers to another option the place where it stands
    :raises ConfigError: a file cannot be read or parsed, or a value is not allowed
    """
    known: Known = {}
    for section, opt in registered(conf):
        for group, name in _names(section, opt):
            known.setdefault(group.lower(), {})[name.replace("-", "_")] = opt
    warnings: list[str] = []
    references: dict[cfg.Opt, str] = {}
    refers: dict[cfg.Opt, list[cfg.Opt]] = {}
    for path in paths:
        for section, values in _parse(path).items():
            names = known.get(section.lower(), {})
            for name, raw in values.items():
                where = f"{path}: [{section}] {name}"
                found = names.get(name.replace("-", "_"))
                if found is None:
                    warnings.extend(_slip(where, name, list(names)))
                elif any("$" in value for value in raw):
                    refers[found] = _check_references(where, raw, names, known)
                    references[found] = where
                else:
                    refers.pop(found, None)
                    _check_value(where, found, raw)
    for opt in refers:
        if is_circular(opt, refers):
            raise ConfigError(f"{references[opt]}: its value refers with $ to {ITSELF}")
    return warnings, references


def is_circular(start: T, refers: Mapping[T, Iterable[T]]) -> bool:
    """Tell whether the references of one option lead back to it."""
    seen: set[T] = set()
    ahead = list(refers.get(start, ()))
    while ahead:
        here = ahead.pop()
        if here == start:
            return True
        if here not in seen:
            seen.add(here)
            ahead.extend(refers.get(here, ()))
    return False


def _names(section: str, opt: cfg.Opt) -> Iterator[tuple[str, str]]:
    yield section, opt.name
    yield section, opt.dest
    for old in opt.deprecated_opts:
        yield old.group or section, old.name or opt.name


def _slip(where: str, name: str, names: list[str]) -> list[str]:
    close = difflib.get_close_matches(name, names, n=1, cutoff=_SLIP)
    return [f"{where} is not an option; did you mean {close[0]}?"] if close else []


def _parse(path: str) -> dict[str, dict[str, list[str]]]:
    full = str(Path(path).expanduser())
    try:
        text = Path(full).read_text()
    except FileNotFoundError:
        raise ConfigError(f"configuration file {path} does not exist") from None
    except PermissionError:
        raise ConfigError(f"configuration file {path} cannot be read: permission denied") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"configuration file {path}, line {line}: not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"configuration file {path} cannot be read: {error.strerror}") from None
    if text.startswith(MARK):
        raise ConfigError(f"configuration file {path}, line 1: {MARKED}")
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(full, sections).parse()
    except cfg.ParseError as error:
        # The line itself is not shown: it may be a password.
        raise ConfigError(
            f"configuration file {path}, line {error.lineno}: {_syntax(str(error.msg))}"
        ) from None
    return sections


def _syntax(text: str) -> str:
    if "assignment" in text and "Section" not in text:
        return "no '=' found; a line is OPTION = VALUE, [SECTION] or # comment"
    if "Section must be started" in text:
        return "this option stands before the first [SECTION]"
    return re.sub(r"\s+", " ", text)


def _check_references(where: str, raw: list[str], names: Names, known: Known) -> list[cfg.Opt]:
    found = []
    for reference in _REFERENCE.findall(" ".join(raw).replace("$$", "").replace("\\$", "")):
        section, dot, name = reference.rpartition(".")
        here = known.get(section.lower(), {}) if dot else {**known.get("default", {}), **names}
        if name not in here:
            raise ConfigError(
                f"{where}: its value refers with $ to an option that does not exist; write $$ for "
                "a dollar sign"
            )
        found.append(here[name])
    return found


def _check_value(where: str, opt: cfg.Opt, raw: list[str]) -> None:
    for value in raw:
        try:
            good = is_usable(opt, opt.type(value))
        except (ValueError, TypeError):
            good = False
        if not good:
            shown = "***" if opt.secret else short(value)
            raise ConfigError(f"{where} = {shown}: not valid; allowed: {allowed(opt)}")


def short(text: str) -> str:
    """Return what a message shows of a text of the file: not much more than one line."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def is_usable(opt: cfg.Opt, value: Any) -> bool:
    """Tell whether a converted value can be worked with.

    Two pass the type that must not: ``nan``, which is above every minimum, and the None that an
    empty number becomes.
    """
    if value is None:
        return opt.default is None
    return not isinstance(value, float) or math.isfinite(value)


def allowed(opt: cfg.Opt) -> str:
    """Say in words which values an option takes."""
    return _allowed(opt.type)


def _allowed(kind: Any) -> str:
    if isinstance(kind, types.Boolean):
        return "true or false"
    choices = getattr(kind, "choices", None)
    if choices:
        return "one of " + ", ".join(str(choice) for choice in choices)
    if isinstance(kind, types.Number):
        return _number(kind)
    if isinstance(kind, types.List):
        return f"a list separated by commas, each item {_allowed(kind.item_type)}"
    if isinstance(kind, types.Dict):
        return "a list of KEY:VALUE separated by commas"
    pattern = getattr(kind, "regex", None)
    if pattern is not None:
        return f"text that matches {pattern.pattern}"
    words = {
        types.HostAddress: "a host name or an IP address",
        types.IPAddress: "an IP address",
        types.Hostname: "a host name",
        types.URI: "a URL",
        types.String: "text",
    }
    return next((text for cls, text in words.items() if isinstance(kind, cls)), "see the sample")


def _number(kind: types.Number) -> str:
    text = "a whole number" if isinstance(kind, types.Integer) else "a number such as 1.5"
    if kind.min is not None and kind.max is not None:
        return f"{text} from {kind.min} to {kind.max}"
    if kind.min is not None:
        return f"{text}, {kind.min} or more"
    if kind.max is not None:
        return f"{text}, {kind.max} or less"
    return text


def place(conf: cfg.ConfigOpts, name: str, group: str | None = None) -> str:
    """Name where an option's value comes from, for the head of a message."""
    location = conf.get_location(name, group)
    section = f"[{group or 'DEFAULT'}] {name}"
    if location is None or location.location not in (
        cfg.Locations.user,
        cfg.Locations.environment,
    ):
        return section
    return f"{location.detail}: {section}"
