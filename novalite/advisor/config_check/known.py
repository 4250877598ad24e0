# SPDX-License-Identifier: Apache-2.0
"""What is known of options: novalite's own, Nova's, and what a name that is neither may mean.

Used by the configuration check. The own options are those that novalite's programs register, with
those of the libraries that they use. Nothing here reads a file of the operator.
"""

import contextlib
import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from keystoneauth1 import loading
from keystonemiddleware import opts as keystone_opts
from oslo_config import cfg

from novalite import conf as conf_module
from novalite import log
from novalite.advisor.config_check import options_table
from novalite.advisor.config_check.options_table import NovaOption, Table
from novalite.advisor.config_check.parser import Entry, normal
from novalite.api import policy
from novalite.conf import files, messaging

# How like a known name an unknown one must be to be taken for a slip of the pen.
_SLIP = 0.75
_SLIP_ELSEWHERE = 0.85
_SECTION_SLIP = 0.7
# What [keystone_authtoken] takes besides depends on its auth_type.
_LOGINS = ("password", "v3password", "v3applicationcredential")


@dataclass(frozen=True, slots=True)
class Own:
    """An option that novalite reads; ``former`` when the file uses a former name of it.

    ``default`` is novalite's, which for an option of a library may not be the library's.
    """

    section: str
    opt: cfg.Opt
    default: Any = None
    former: bool = False

    @property
    def text(self) -> str:
        """Section and name as they are written."""
        return f"[{self.section}] {self.opt.dest}"


@dataclass(slots=True)
class Known:
    """All options by section and name, former names included."""

    own: dict[tuple[str, str], Own] = field(default_factory=dict)
    nova: Table = field(default_factory=Table)

    def find(self, entry: Entry) -> Own | None:
        """Return the option of novalite's that this setting sets."""
        return self.own.get(entry.key)

    def options(self) -> Iterator[Own]:
        """Yield every own option once."""
        return (each for each in self.own.values() if not each.former)

    def has_section(self, section: str) -> bool:
        """Tell whether novalite or Nova has such a section."""
        wanted = normal(section)
        return any(known == wanted for known, _ in self.own) or self.nova.has_section(wanted)

    def nearest_section(self, section: str) -> str | None:
        """Return the known section that is most like this one, if any is like it."""
        names = {each.section for each in self.own.values()} | set(self.nova.options)
        lowered = {name.lower(): name for name in names}
        close = difflib.get_close_matches(section.lower(), lowered, n=1, cutoff=_SECTION_SLIP)
        return lowered[close[0]] if close else None

    def elsewhere(self, name: str) -> list[str]:
        """Return the options of this name in all sections, novalite's first."""
        own = [each.text for (_, known), each in self.own.items() if known == name]
        nova = [
            each.text()
            for names in self.nova.options.values()
            if (each := names.get(name)) is not None
        ]
        return list(dict.fromkeys([*own, *nova]))

    def nearest(self, section: str, name: str) -> str | None:
        """Return the known option that is most like this one: first in its section, then in any."""
        wanted = normal(section)
        here = {known: each.text for (group, known), each in self.own.items() if group == wanted}
        for known in self.nova.names(wanted):
            here.setdefault(known, f"[{section}] {known}")
        everywhere = {known: each.text for (_, known), each in self.own.items()}
        for names, cutoff in ((here, _SLIP), (everywhere, _SLIP_ELSEWHERE)):
            close = difflib.get_close_matches(_bare(name), names, n=1, cutoff=cutoff)
            if close:
                return names[close[0]]
        return None

    def of_nova(self, section: str, name: str) -> NovaOption | None:
        """Return Nova's option of this present name."""
        return self.nova.find(normal(section), name)

    def is_of_a_family(self, section: str, name: str) -> bool:
        """Tell whether an early Nova had options of such names."""
        return self.nova.family(normal(section), name) is not None

    def renamed(self, section: str, name: str) -> tuple[Own | None, NovaOption] | None:
        """Return the option that had this name in an earlier Nova, and novalite's like it."""
        found = self.nova.renamed(normal(section), name)
        if found is None:
            return None
        return self.own.get((found.section, found.name)), found


def _bare(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def load() -> Known:
    """Return everything that is known."""
    known = Known(nova=options_table.load())
    conf = make_options()
    _register_keystone(conf)
    for section, opt in files.registered(conf):
        known.own[normal(section), opt.dest] = Own(section, opt, _default(conf, section, opt))
    for each in list(known.own.values()):
        for old in each.opt.deprecated_opts:
            key = normal(old.group or each.section), old.name or each.opt.dest
            known.own.setdefault(key, replace(each, former=True))
    return known


def _default(conf: cfg.ConfigOpts, section: str, opt: cfg.Opt) -> Any:
    # oslo.config has no public way to ask for a default that was changed.
    info = conf._get_opt_info(opt.dest, None if section == "DEFAULT" else section)
    return info.get("default", opt.default)


def make_options() -> cfg.ConfigOpts:
    """Return the options of all programs of novalite together, without any value."""
    conf = cfg.ConfigOpts()
    for register in (
        conf_module.register_opts,
        log.register_opts,
        messaging.register_opts,
        policy.register_opts,
    ):
        register(conf)
    return conf


def _register_keystone(conf: cfg.ConfigOpts) -> None:
    found = [opt for _group, opts in keystone_opts.list_auth_token_opts() for opt in opts]
    for login in _LOGINS:
        found += loading.get_auth_plugin_conf_options(login)
    for opt in found:
        # The ways to log in share the names of most of their options.
        with contextlib.suppress(cfg.DuplicateOptError):
            conf.register_opt(opt, group="keystone_authtoken")
