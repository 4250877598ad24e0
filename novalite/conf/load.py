# SPDX-License-Identifier: Apache-2.0
"""Reads the options of a program and checks every one of them before anything else happens."""

from collections.abc import Callable, Sequence

from oslo_config import cfg

from novalite import conf as conf_module
from novalite.conf import messaging

Register = Callable[[cfg.ConfigOpts], None]


class ConfigError(Exception):
    """The options are not usable; the text is one line for the user and holds no secret."""


def load(
    conf: cfg.ConfigOpts,
    program: str,
    argv: list[str] | None = None,
    register: Sequence[Register] = (),
) -> list[str]:
    """Register all options, parse the command line and its files, check every value.

    :param register: functions that register options of layers above (logging)
    :returns: warnings for the log
    :raises ConfigError: anything is wrong
    """
    for function in (conf_module.register_opts, messaging.register_opts, *register):
        function(conf)
    try:
        conf(args=argv, project="novalite", prog=program)
    except cfg.Error as error:
        raise ConfigError(str(error)) from error
    return []


def reread(conf: cfg.ConfigOpts) -> None:
    """Read the files again (SIGHUP)."""
    conf.reload_config_files()
