# SPDX-License-Identifier: Apache-2.0
"""What the resources work with; made once in :func:`novalite.api.app.make_app` and passed on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from oslo_config import cfg

from novalite import context as context_module
from novalite.api import policy, wakeup
from novalite.db import engine
from novalite.objects.block_device import BlockDevice
from novalite.objects.inquiry import CapacityReport, Examination
from novalite.objects.request_spec import ImageMeta, NetworkRequest, RequestSpec


class Images(Protocol):
    """What the API asks of the image service."""

    def get(self, context: context_module.RequestContext, image_id: str, /) -> ImageMeta:
        """Return the image.

        :raises exception.ImageInBodyNotFound: there is none, or the user may not see it
        """


class Networks(Protocol):
    """What the API asks of the network service."""

    def security_groups(
        self, context: context_module.RequestContext, names: Iterable[str], /
    ) -> list[str]:
        """Return the ids of the project's security groups.

        :raises exception.SecurityGroupInBodyNotFound: the project has no such group
        """

    def validate(
        self,
        context: context_module.RequestContext,
        requested: list[NetworkRequest] | None,
        count: int,
        /,
    ) -> list[NetworkRequest]:
        """Return what *count* servers will get; None asks for what the project has.

        :raises exception.Invalid: they cannot have it
        """


class Volumes(Protocol):
    """What the API asks of block storage."""

    def check(
        self, context: context_module.RequestContext, devices: Sequence[BlockDevice], /
    ) -> ImageMeta:
        """Refuse volumes that cannot be had; return what is known of the root volume's image.

        :raises exception.Invalid: they cannot be had
        """


class Computes(Protocol):
    """What the API asks of compute hosts and waits for."""

    def get_console_output(
        self,
        context: context_module.RequestContext,
        *,
        host: str,
        instance_uuid: str,
        tail_length: int | None,
        timeout: float,
    ) -> str:
        """Return the guest's console text."""

    def get_host_uptime(
        self, context: context_module.RequestContext, *, host: str, node: str, timeout: float
    ) -> str:
        """Return how long the machine behind a node runs.

        :raises exception.BusUnavailable: no answer in time
        """


class Schedulers(Protocol):
    """What the API asks of a scheduler and waits for; nothing is selected for it."""

    def examine_hosts(
        self,
        context: context_module.RequestContext,
        *,
        spec: RequestSpec,
        hosts: list[str],
        timeout: float,
    ) -> Examination:
        """Return what all filters say of these hosts, or of all.

        :raises exception.BusUnavailable: no answer in time
        """

    def count_capacity(
        self,
        context: context_module.RequestContext,
        *,
        spec: RequestSpec,
        hosts: list[str],
        timeout: float,
    ) -> CapacityReport:
        """Return how many such servers more fit these hosts, or all.

        :raises exception.BusUnavailable: no answer in time
        """


@dataclass(frozen=True, slots=True)
class Parts:
    """Options, database, clients of the neighbours and of the other processes."""

    conf: cfg.ConfigOpts
    database: engine.Database
    images: Images
    networks: Networks
    volumes: Volumes
    computes: Computes
    schedulers: Schedulers
    wakeup: wakeup.Wakeup
    policy: policy.Policy


class Resource:
    """Base of all resources."""

    def __init__(self, parts: Parts):
        self.parts = parts
        self.conf = parts.conf
        self.database = parts.database
        self.policy = parts.policy
