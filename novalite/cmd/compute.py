# SPDX-License-Identifier: Apache-2.0
"""``novalite-compute``: builds and removes servers on one host; never reaches the database."""

from typing import Any

from novalite.cmd import launch


def main() -> None:
    """Start the compute service."""
    launch.main("novalite-compute", build)


def build(conf: Any, bus: Any, fail: Any) -> Any:
    """Make the compute's manager."""
    from novalite import exception
    from novalite.compute import manager
    from novalite.conductor import rpcapi
    from novalite.network import client
    from novalite.virt import loader
    from novalite.volume import client as volume_client

    try:
        driver = loader.load_driver(conf, conf.host)
    except exception.ConfigurationError as error:
        launch.die("novalite-compute", error.message())
    conductor = rpcapi.ConductorAPI(bus)
    network, volumes = client.NetworkClient(conf), volume_client.VolumeClient(conf)
    return manager.ComputeManager(conf, conductor, driver, network, volumes, fail)
