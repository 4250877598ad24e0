# SPDX-License-Identifier: Apache-2.0
"""Makes the driver of this host; novalite-compute calls it once, at its start."""

from oslo_config import cfg

from novalite.virt import driver
from novalite.virt.libvirt import driver as libvirt_driver
from novalite.virt.libvirt import fakelibvirt


def load_driver(conf: cfg.ConfigOpts, host: str) -> driver.ComputeDriver:
    """Return the libvirt driver of *host* on the fake hypervisor; it is not connected yet.

    :raises ConfigurationError: options of [libvirt] contradict each other
    """
    hypervisor = fakelibvirt.FakeLibvirt(conf, host)
    return libvirt_driver.LibvirtDriver(
        conf, hypervisor, hypervisor.uris(), on_reload=hypervisor.reload
    )
