# SPDX-License-Identifier: Apache-2.0
"""What differs between the options in force and the files as they are now.

Used by :mod:`novalite.conf.load` on SIGHUP. An option that was declared with ``mutable=True`` may
change while the process runs; whoever keeps a copy of its value takes the new one in its manager's
``reload``. Every other option keeps the value that it had at the start, and the log says so.
"""

from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from novalite.conf import files


@dataclass(frozen=True, slots=True)
class Change:
    """One option whose value in the files is another one than that in force."""

    section: str
    opt: cfg.Opt
    old: Any
    new: Any

    @property
    def name(self) -> str:
        """Section and option, as in the log: ``DEFAULT.debug``."""
        return f"{self.section}.{self.opt.dest}"

    def text(self) -> str:
        """Say what became of the change; a secret is not shown."""
        old, new = ("***", "***") if self.opt.secret else (self.old, self.new)
        if self.opt.mutable:
            return f"{self.name}: {_shown(old)} -> {_shown(new)}"
        return f"{self.name}: needs a restart; {_shown(old)} stays in force"


@dataclass(slots=True)
class Reading:
    """One reading of changed files: warnings, what has changed, and what waits for a restart."""

    conf: cfg.ConfigOpts
    warnings: list[str] = field(default_factory=list)
    taken: list[Change] = field(default_factory=list)
    waiting: list[Change] = field(default_factory=list)

    def apply(self) -> None:
        """Put the new values in force."""
        for change in self.taken:
            _put(self.conf, change, change.new)

    def undo(self) -> None:
        """Put the former values in force again."""
        for change in self.taken:
            _put(self.conf, change, change.old)

    def changes(self, name: str) -> bool:
        """Tell whether an option (``DEFAULT.debug``) gets a new value."""
        return any(change.name == name for change in self.taken)


def between(conf: cfg.ConfigOpts, fresh: cfg.ConfigOpts, warnings: list[str]) -> Reading:
    """Compare the options in force with those that were read just now; nothing changes yet."""
    reading = Reading(conf, warnings)
    for section, opt in files.registered(conf):
        old, new = value(conf, section, opt), value(fresh, section, opt)
        if old != new:
            chosen = reading.taken if opt.mutable else reading.waiting
            chosen.append(Change(section, opt, old, new))
    return reading


def value(conf: cfg.ConfigOpts, section: str, opt: cfg.Opt) -> Any:
    """Return an option's value."""
    return conf[opt.dest] if section == "DEFAULT" else conf[section][opt.dest]


def adopt(conf: cfg.ConfigOpts, fresh: cfg.ConfigOpts) -> None:
    """Register on *fresh* what libraries have registered on *conf* since the start."""
    # oslo.config has no public way to ask for the Opt objects and for changed defaults.
    for info, group in conf._all_opt_infos():
        opt, section = info["opt"], group.name if group else None
        if isinstance(opt, cfg.SubCommandOpt):
            continue
        if not _knows(fresh, section, opt.dest):
            fresh.register_opt(opt, group=section)
        if "default" in info:
            fresh.set_default(opt.dest, info["default"], group=section)


def _knows(conf: cfg.ConfigOpts, section: str | None, name: str) -> bool:
    if section is None:
        return name in conf
    return section in conf and name in conf[section]


def _put(conf: cfg.ConfigOpts, change: Change, wanted: Any) -> None:
    group = None if change.section == "DEFAULT" else change.section
    conf.set_override(change.opt.dest, _literal(wanted), group=group)


def _literal(wanted: Any) -> Any:
    """Write a value so that its dollar signs do not begin the name of another option."""
    if isinstance(wanted, str):
        return wanted.replace("$", "$$")
    if isinstance(wanted, list):
        return [_literal(item) for item in wanted]
    return wanted


def _shown(wanted: Any) -> str:
    if isinstance(wanted, list):
        return ",".join(map(str, wanted)) or "(empty)"
    return "(unset)" if wanted is None else str(wanted)
