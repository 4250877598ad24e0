# SPDX-License-Identifier: Apache-2.0
"""Reads the options of a program and checks every one of them before anything else happens.

oslo.config checks a value when it is first read, which may be hours after the start, and its
message does not always name file and section. Here the files are read twice: by :mod:`files`, which
knows where each value stands, and by oslo.config, which everybody else asks. Called by ``cmd`` and
by the WSGI application; nothing here may touch bus, database or network.
"""

import os
from collections.abc import Callable, Sequence

from oslo_config import cfg

from novalite import concurrency
from novalite import conf as conf_module
from novalite.conf import changes, files, rules
from novalite.conf.files import ConfigError

__all__ = ["ConfigError", "Loader"]

Register = Callable[[cfg.ConfigOpts], None]
Rule = Callable[[cfg.ConfigOpts], list[str]]


class Loader:
    """The options of one process: read at the start and, on SIGHUP, again.

    :param register: functions that register options of layers above, for example of logging
    :param checks: functions that look at several options together; each returns warnings or
        raises :class:`ConfigError`
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        program: str,
        argv: list[str],
        register: Sequence[Register] = (),
        checks: Sequence[Rule] = (),
    ):
        self._conf = conf
        self._program = program
        self._argv = argv
        self._register = (conf_module.register_opts, *register)
        self._checks = (rules.check, *checks)

    def load(self) -> list[str]:
        """Parse the command line and its files and check every value.

        :returns: warnings for the log
        :raises ConfigError: one line with file, section, option, value and what is allowed
        """
        return self._read(self._conf)

    def reread(self) -> changes.Reading:
        """Read changed files and check them as at the start; nothing is in force yet.

        :returns: what to put in force
        :raises ConfigError: as :meth:`load`; all former values stay
        """
        fresh = cfg.ConfigOpts()
        for function in self._register:
            function(fresh)
        changes.adopt(self._conf, fresh)
        return changes.between(self._conf, fresh, self._read(fresh))

    def _read(self, conf: cfg.ConfigOpts) -> list[str]:
        for function in self._register:
            function(conf)
        default = concurrency.DEFAULT_FILE
        default_files = [default] if os.path.exists(default) else []
        paths = files.named(self._argv) or default_files
        warnings, references = files.check(paths, conf)
        try:
            conf(
                args=self._argv,
                project="novalite",
                prog=self._program,
                default_config_files=default_files,
                default_config_dirs=[],
            )
        except cfg.Error as error:
            raise ConfigError(str(error)) from error
        except OSError as error:
            raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from error
        _read_all(conf, references)
        for rule in self._checks:
            warnings.extend(rule(conf))
        return warnings


def _read_all(conf: cfg.ConfigOpts, references: dict[cfg.Opt, str]) -> None:
    """Read every option once: what stands in the environment, on the command line or refers to
    another option has not been looked at yet."""
    for section, opt in files.registered(conf):
        try:
            good = files.is_usable(opt, changes.value(conf, section, opt))
        except (cfg.Error, ValueError):
            good = False
        if not good:
            source = references.get(opt) or _source(section, opt)
            raise ConfigError(f"{source}: not valid; allowed: {files.allowed(opt)}")


def _source(section: str, opt: cfg.Opt) -> str:
    """Name the place of a wrong value that stands in no file."""
    variable = f"OS_{section.upper()}__{opt.dest.upper()}"
    if variable not in os.environ:
        return f"command line: [{section}] {opt.name}"
    shown = "***" if opt.secret else os.environ[variable]
    return f"environment variable {variable}: [{section}] {opt.name} = {shown}"
