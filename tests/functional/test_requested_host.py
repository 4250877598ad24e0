# SPDX-License-Identifier: Apache-2.0
"""A create that names the host it wants: through the whole cloud, and subject to the filters."""

from collections.abc import Callable

from tests.functional.cloud import Cloud

Make = Callable[..., Cloud]


def test_a_requested_host_is_kept_to_and_has_to_pass_the_filters(make_cloud: Make) -> None:
    cloud = make_cloud(computes=2)
    api, old = cloud.api, cloud.api
    api.microversion("2.79")
    hosts = sorted(host for binary, host in api.services() if binary == "nova-compute")
    for host in hosts:
        for wanted in ({"host": host}, {"hypervisor_hostname": host}):
            server = api.wait(api.boot(**wanted))
            assert server["OS-EXT-SRV-ATTR:host"] == host
    assert api.create(host="nowhere").status == 400
    body = {"host": hosts[0], "binary": "nova-compute"}
    old.microversion("2.1")
    assert old.request("PUT", "/os-services/disable", body).status == 200
    fault = api.wait(api.boot(host=hosts[0]), "ERROR")["fault"]
    assert fault["message"] == (
        "No valid host was found. There are not enough hosts available. "
        "2 hosts: requested_destination 1, ComputeFilter 1."
    )
    cloud.assert_books()
