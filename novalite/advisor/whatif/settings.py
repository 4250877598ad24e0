# SPDX-License-Identifier: Apache-2.0
"""One side of a what-if: the scheduler and the hosts' settings that some files describe.

A real nova.conf will do: only what decides about places is read, and a filter of Nova's that
novalite has left out is left out here too, with a note. Nothing of it is put in force.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from novalite import conf as conf_module
from novalite import exception
from novalite.advisor.config_check import known, parser
from novalite.advisor.config_check.settings import Settings
from novalite.conf import files as conf_files
from novalite.conf.files import ConfigError
from novalite.objects import capacity
from novalite.scheduler import filters, manager, weights
from novalite.scheduler.loading import bare
from novalite.scheduler.pipeline import Pipeline

# What a host is set to, and of which resource it is.
RATIOS = {name: resource for resource, name in capacity.RATIO_OPTIONS.items()}
RESERVED = tuple(capacity.RESERVED_OPTIONS.values())
HOST_OPTIONS = (*RATIOS, *RESERVED)
_FURTHER = ("max_attempts", "default_availability_zone")
# Both sides draw alike where the options ask for chance.
_SEED = 1


@dataclass(slots=True)
class Side:
    """The old or the new settings.

    ``explicit`` are the host options that a file sets, ``values`` those of all options that decide
    about places, under "[section] name", for the comparison.
    """

    files: list[str]
    pipeline: Pipeline
    default_zone: str
    explicit: dict[str, float] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def load(files: list[str]) -> Side:
    """Read one side; no files are the defaults.

    :raises ConfigError: a file cannot be read, or holds a value that is not allowed
    """
    _check(files)
    conf = cfg.ConfigOpts()
    conf_module.register_opts(conf)
    try:
        conf([], project="novalite", default_config_files=files, default_config_dirs=[])
        return _side(conf, files)
    except exception.ConfigurationError as error:
        raise ConfigError(f"{', '.join(files) or 'defaults'}: {error.message()}") from None
    except (cfg.Error, ValueError) as error:
        # What the files say is good; this came from the environment.
        raise ConfigError(" ".join(str(error).split())) from None


def _check(files: list[str]) -> None:
    """Look at what counts here; other options may have any value.

    :raises ConfigError: with file and line
    """
    parsed = parser.read(files)
    for fault in parsed.faults:
        raise ConfigError(f"{fault.file}, line {fault.line}: {fault.text}")
    settings = Settings(parsed, known.load())
    for own in settings.known.options():
        name = own.opt.dest
        if own.section != "filter_scheduler" and name not in (*HOST_OPTIONS, *_FURTHER):
            continue
        entry = settings.entry(own.section, name)
        if entry is None or "$" in entry.value:
            continue
        if settings.value(own.section, name) is None:
            allowed = conf_files.allowed(own.opt)
            raise ConfigError(
                f"{entry.where}: {own.text} = {entry.value}: not valid; allowed: {allowed}"
            )


def _side(conf: cfg.ConfigOpts, files: list[str]) -> Side:
    notes = _leave_out(conf)
    side = Side(
        files,
        manager.make_pipeline(conf, random.Random(_SEED)),
        str(conf.default_availability_zone),
        notes=notes,
    )
    for name in HOST_OPTIONS:
        value = float(conf[name])
        if name in RATIOS:
            value = capacity.effective_ratio(RATIOS[name], value)
        if _is_set(conf, name):
            side.explicit[name] = value
        side.values[f"[DEFAULT] {name}"] = value
    for name in conf.filter_scheduler:
        side.values[f"[filter_scheduler] {name}"] = conf.filter_scheduler[name]
    side.values["[scheduler] max_attempts"] = conf.scheduler.max_attempts
    return side


def _is_set(conf: cfg.ConfigOpts, name: str) -> bool:
    location = conf.get_location(name)
    return location is not None and location.location in (
        cfg.Locations.user,
        cfg.Locations.environment,
    )


def _leave_out(conf: cfg.ConfigOpts) -> list[str]:
    """Take the filters and weighers that novalite has left out from the lists; say which."""
    notes = []
    for option, left_out in (
        ("enabled_filters", filters.LEFT_OUT),
        ("weight_classes", weights.LEFT_OUT),
    ):
        names = list(conf.filter_scheduler[option])
        kept = [name for name in names if bare(name) not in left_out]
        if kept != names:
            conf.set_override(option, kept, group="filter_scheduler")
        gone = [bare(name) for name in names if bare(name) in left_out]
        notes += [f"{name} is left out: {left_out[name]}" for name in gone]
    return notes
