# SPDX-License-Identifier: Apache-2.0
"""What kind of failure an error is, told by the texts that our own services make."""

import pytest

from novalite import exception
from novalite.db import server_groups
from novalite.objects import failure
from novalite.virt.libvirt.config import CpuPolicy
from novalite.volume import errors as volume_errors

CPU = (
    "unsupported configuration: guest and host CPU are not compatible: Host CPU does not provide "
    "required features: vmx"
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exception.HypervisorError(reason=CPU), "cpu_not_supported"),
        (
            exception.HypervisorError(reason=CpuPolicy("kvm", "host-model").blamed(CPU)),
            "cpu_not_supported",
        ),
        (exception.HypervisorError(reason="no space left"), "hypervisor_failed"),
        (exception.DomainNotFound(instance_uuid="u"), "hypervisor_failed"),
        (exception.ComputeResourcesUnavailable(reason="Free disk"), "claim_refused"),
        (exception.PortBindingFailed(port_id="p"), "network_failed"),
        (exception.NeighborUnavailable(service="network"), "network_failed"),
        (exception.NeighborUnavailable(service="image"), "image_failed"),
        (exception.NeighborError(service="volume", status=500, reason="x"), "neighbor_failed"),
        (volume_errors.InvalidVolume(reason="volume 'v' ..."), "volume_failed"),
        (
            volume_errors.VolumeNotCreated(
                volume_id="v", seconds=1, attempts=2, volume_status="creating"
            ),
            "volume_failed",
        ),
        (volume_errors.VolumeDriverNotFound(driver_type="rbd"), "volume_failed"),
        (exception.ImageInBodyNotFound(image_id="i"), "image_failed"),
    ],
)
def test_our_errors_have_a_kind(error, code):
    assert failure.of(error.message()).code == code


@pytest.mark.parametrize("words", server_groups.HARD.values())
def test_a_policy_of_a_group_is_no_fault_of_the_host(words):
    assert failure.of(words) is failure.GROUP


def test_other_errors_too():
    assert failure.of("Unexpected error: KeyError") is failure.UNEXPECTED
    assert failure.of("") is failure.of("something else") is failure.OTHER


def test_words_and_advice_are_whole():
    for code, kind in failure.KINDS.items():
        assert code == kind.code
        # Words are said to everybody, after "the host".
        assert "{" not in kind.words and "[" not in kind.words
        assert "{host}" not in kind.advice.format(host="h")
    assert "cpu_mode = none" in failure.CPU.advice
