# SPDX-License-Identifier: Apache-2.0
"""What all parts of the fake libvirt share: numbers, error, options, and the node they play.

Only the other ``fake*`` modules import this one.
"""

import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from oslo_config import cfg

from novalite.virt.libvirt import fakestore

T = TypeVar("T")


class Constants:
    """The numbers are libvirt's own."""

    VIR_ERR_INTERNAL_ERROR = 1
    VIR_ERR_XML_ERROR = 27
    VIR_ERR_SYSTEM_ERROR = 38
    VIR_ERR_NO_DOMAIN = 42
    VIR_ERR_NO_STORAGE_POOL = 49
    VIR_ERR_NO_STORAGE_VOL = 50
    VIR_ERR_OPERATION_FAILED = 9
    VIR_ERR_OPERATION_INVALID = 55
    VIR_ERR_CONFIG_UNSUPPORTED = 67
    VIR_ERR_NO_DOMAIN_METADATA = 80
    VIR_ERR_STORAGE_VOL_EXIST = 90

    VIR_DOMAIN_NOSTATE = 0
    VIR_DOMAIN_RUNNING = 1
    VIR_DOMAIN_BLOCKED = 2
    VIR_DOMAIN_PAUSED = 3
    VIR_DOMAIN_SHUTDOWN = 4
    VIR_DOMAIN_SHUTOFF = 5
    VIR_DOMAIN_CRASHED = 6
    VIR_DOMAIN_PMSUSPENDED = 7

    VIR_DOMAIN_START_PAUSED = 1
    VIR_DOMAIN_AFFECT_CONFIG = 2
    VIR_DOMAIN_METADATA_ELEMENT = 2
    VIR_DOMAIN_UNDEFINE_MANAGED_SAVE = 1
    VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA = 2
    VIR_DOMAIN_UNDEFINE_NVRAM = 4
    VIR_STREAM_NONBLOCK = 1


class libvirtError(Exception):
    """What every call of libvirt raises."""

    def __init__(self, defmsg: str, code: int):
        super().__init__(defmsg)
        self._code = code

    def get_error_code(self) -> int:
        """Return one of the VIR_ERR numbers."""
        return self._code

    def get_error_message(self) -> str:
        """Return the text."""
        return str(self)


@dataclass(frozen=True, slots=True)
class Settings:
    """One reading of [fake_libvirt]; replaced as a whole by a reload."""

    vcpus: int
    memory_mb: int
    local_gb: int
    spawn_delay: float
    spawn_jitter: float
    fail_spawn: float
    fail_destroy: float
    nested: tuple[str, ...]


def read_settings(conf: cfg.ConfigOpts) -> Settings:
    group = conf.fake_libvirt
    return Settings(
        vcpus=group.vcpus,
        memory_mb=group.memory_mb,
        local_gb=group.local_gb,
        spawn_delay=group.spawn_delay,
        spawn_jitter=group.spawn_jitter,
        fail_spawn=group.fail_spawn,
        fail_destroy=group.fail_destroy,
        nested=tuple(group.nested),
    )


class Play:
    """How the hypervisor behaves; shared by all nodes, changed by a reload."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._random = random.Random()

    def draw(self, share: float) -> bool:
        """Tell by lot whether this is one of the *share* that fail."""
        return self._random.random() < share

    def spawn_time(self) -> float:
        """Return for how many seconds the next spawn goes on."""
        return self.settings.spawn_delay + self._random.random() * self.settings.spawn_jitter


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the play, with the store that keeps its domains and disks."""

    name: str
    store: fakestore.Store
    play: Play

    def ask(self, call: Callable[..., T], *args: Any) -> T:
        """Call a method of the store for this node.

        :raises sqlite3.IntegrityError: for the caller to say what there is already
        :raises libvirtError: the store is in trouble (a full disk, a damaged file)
        """
        try:
            return call(self.name, *args)
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise libvirtError(
                f"internal error: domain store: {error}", Constants.VIR_ERR_INTERNAL_ERROR
            ) from error
