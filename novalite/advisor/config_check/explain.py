# SPDX-License-Identifier: Apache-2.0
"""``novalite-status config explain OPTION``: value, where it is set, who else sets it, effect.

The answer is a dict of JSON primitives; :func:`lines` makes text of it. A secret is never shown.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from novalite import exception
from novalite.advisor.config_check import effect, parser
from novalite.advisor.config_check.finding import Totals
from novalite.advisor.config_check.known import Known, Own
from novalite.advisor.config_check.parser import Entry, Parsed, normal
from novalite.advisor.config_check.settings import Settings
from novalite.conf import files

Json = dict[str, Any]
_WRITTEN = re.compile(r"(?:\[(?P<bracket>[^]]+)\]\s*|(?P<dotted>[^.]+)\.)?(?P<name>[^.\s]+)")


class UnknownOption(exception.NovaliteException):
    """There is no such option, or several; the text says which ones there are."""


def explain(
    word: str, paths: list[str], known: Known, totals: Totals, environ: Mapping[str, str]
) -> list[Json]:
    """Return what is to say about each option that *word* names: one of novalite's, or of Nova's.

    :param word: NAME, SECTION.NAME or "[SECTION] NAME"; a former name will do
    :raises UnknownOption: neither novalite nor Nova has it
    :raises ConfigError: a file cannot be read
    """
    match = _WRITTEN.fullmatch(word.strip())
    if match is None:
        raise UnknownOption(f"write NAME or SECTION.NAME, not {word!r}")
    section, name = match["bracket"] or match["dotted"], match["name"]
    parsed = parser.read(paths)
    settings = Settings(parsed, known)
    own = _own(known, section, name)
    if own:
        return [_explained(each, settings, totals, environ) for each in own]
    foreign = _foreign(known, parsed, section, name)
    if foreign:
        return foreign
    near = known.nearest(section or "DEFAULT", name)
    hint = f"; did you mean {near}?" if near else ""
    raise UnknownOption(f"neither novalite nor Nova has an option {word}{hint}")


def _own(known: Known, section: str | None, name: str) -> list[Own]:
    found: dict[str, Own] = {}
    for (group, each), own in known.own.items():
        if each == name and (section is None or group == normal(section)):
            found.setdefault(own.text, own)
    for former in known.nova.former:
        if not found and former[1] == name and (section is None or former[0] == normal(section)):
            ours = known.renamed(*former)
            if ours is not None and ours[0] is not None:
                found.setdefault(ours[0].text, ours[0])
    return list(found.values())


def _foreign(known: Known, parsed: Parsed, section: str | None, name: str) -> list[Json]:
    groups = [normal(section)] if section else list(known.nova.options)
    found = []
    for group in groups:
        option = known.of_nova(group, name)
        if option is None or option.name != name:
            continue
        set_by = [e for e in parsed.entries if e.name == name and normal(e.section) == group]
        found.append(
            {
                "option": option.text(),
                "novalite": False,
                "type": option.kind,
                "set_by": [{"file": entry.file, "line": entry.line} for entry in set_by],
            }
        )
    return found


def _explained(own: Own, settings: Settings, totals: Totals, environ: Mapping[str, str]) -> Json:
    opt, section, name = own.opt, own.section, own.opt.dest
    entry = settings.entry(section, name)
    variable = f"OS_{section.upper()}__{name.upper()}"
    counts = None if variable in environ else entry
    found = own.default if entry is None else entry.value
    if opt.multi and entry is not None:
        found = [each.value for each in settings.all(section, name)]
    value = environ.get(variable, found)
    return {
        "option": own.text,
        "novalite": True,
        "value": _shown(opt, value),
        "source": _source(entry, variable if variable in environ else None),
        "default": _shown(opt, opt.sample_default or own.default),
        "allowed": files.allowed(opt),
        "takes_effect": "SIGHUP" if opt.mutable else "restart",
        "set_by": [_row(each, counts, own) for each in settings.all(section, name)],
        "former_names": [
            f"[{old.group or section}] {old.name or name}" for old in opt.deprecated_opts
        ],
        "help": " ".join(str(opt.help or "").split()),
        "effect": effect.effects(settings, section, name, totals),
    }


def _source(entry: Entry | None, variable: str | None) -> Json:
    if variable is not None:
        return {"environment": variable}
    return {} if entry is None else {"file": entry.file, "line": entry.line}


def _row(each: Entry, entry: Entry | None, own: Own) -> Json:
    return {
        "file": each.file,
        "line": each.line,
        "name": f"[{each.section}] {each.name}",
        "value": _shown(own.opt, each.value),
        "in_force": each is entry or (entry is not None and own.opt.multi),
    }


def _shown(opt: Any, value: Any) -> str | None:
    if value is None:
        return None
    if opt.secret:
        return "***"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def lines(found: Json) -> Iterator[str]:
    """Yield one option's explanation as text."""
    if not found["novalite"]:
        yield f"{found['option']}: an option of Nova that novalite does not have; no effect here"
        for each in found["set_by"]:
            yield f"  set in {each['file']}, line {each['line']}"
        return
    value = "(unset)" if found["value"] is None else found["value"]
    yield f"{found['option']} = {value}"
    yield f"  from: {_from(found['source'])}"
    default = "unset" if found["default"] is None else found["default"] or "empty"
    yield f"  default: {default}; allowed: {found['allowed']}; a change needs: " + (
        "SIGHUP" if found["takes_effect"] == "SIGHUP" else "a restart"
    )
    for each in found["set_by"]:
        if not each["in_force"]:
            where = f"{each['file']}, line {each['line']}"
            yield f"  also set: {where}: {each['name']} = {each['value']} (does not count)"
    if found["former_names"]:
        yield f"  former names: {', '.join(found['former_names'])}"
    yield f"  {found['help']}"
    for text in found["effect"]:
        yield f"  effect: {text}"


def _from(source: Json) -> str:
    if "environment" in source:
        return f"the environment variable {source['environment']}, which wins over files"
    return f"{source['file']}, line {source['line']}" if source else "default, no file sets it"
