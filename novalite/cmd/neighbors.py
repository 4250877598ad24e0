# SPDX-License-Identifier: Apache-2.0
"""``novalite-neighbors``: development stand-ins for identity, image and network."""

from typing import Any

from novalite.cmd import launch

PROGRAM = "novalite-neighbors"


def main() -> None:
    """Start the neighbours."""
    launch.main(PROGRAM, build, needs_bus=False)


def build(conf: Any, _bus: Any, _fail: Any) -> Any:
    """Make the neighbours' manager, which listens from then on."""
    from novalite.conf.files import ConfigError
    from novalite.neighbors import app

    try:
        return app.NeighborsManager(conf)
    except ConfigError as error:
        launch.die(PROGRAM, str(error))
