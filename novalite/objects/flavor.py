# SPDX-License-Identifier: Apache-2.0
"""The size of a server."""

from dataclasses import dataclass, field
from typing import ClassVar

from novalite.objects import base


@base.register
@dataclass(slots=True)
class Flavor:
    """One flavor: memory in MB, root and ephemeral disk in GB, swap in MB."""

    VERSION: ClassVar[str] = "1.0"

    flavorid: str
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int = 0
    ephemeral_gb: int = 0
    swap_mb: int = 0
    rxtx_factor: float = 1.0
    disabled: bool = False
    is_public: bool = True
    description: str | None = None
    extra_specs: dict[str, str] = field(default_factory=dict)
    id: int | None = None
