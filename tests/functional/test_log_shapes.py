# SPDX-License-Identifier: Apache-2.0
"""The log lines of a boot, to the letter: operators grep for them and merge them by machine.

The host is that of the example which operators know: 7823 MB, 49 GB, 1 vcpu; the flavor has 512 MB.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.functional import lines
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "openstack-logs"
HOST = {"vcpus": 1, "memory_mb": 7823, "local_gb": 49}
CLAIMS = "novalite.compute.claims"
DRIVER = "novalite.virt.libvirt.driver"
TRACKER = "novalite.compute.resource_tracker"
FILTERS = "novalite.filters"
# Loggers under which Nova tells of a boot on its host.
ON_THE_HOST = ("novalite.compute.manager", CLAIMS, "novalite.scheduler.client.report", DRIVER)

# REQUEST, INSTANCE and the columns USER and PROJECT are filled in; the rest is to the letter.
BOOT = """\
INFO novalite.compute.manager [REQUEST USER PROJECT - - -] \
{'memory_mb': 11734.5, 'disk_gb': 49.0, 'vcpu': 16.0}
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Attempting claim: memory 512 MB, disk 1 GB, vcpus 1 CPU
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Total memory: 7823 MB, used: 512.00 MB
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
memory limit: 11734.50 MB, free: 11222.50 MB
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Total disk: 49 GB, used: 0.00 GB
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
disk limit: 49.00 GB, free: 49.00 GB
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Total vcpu: 1 VCPU, used: 0.00 VCPU
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
vcpu limit: 16.00 VCPU, free: 16.00 VCPU
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] Claim successful
INFO novalite.scheduler.client.report [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Submitted allocation for instance
INFO novalite.virt.libvirt.driver [REQUEST USER PROJECT - - -] [instance: INSTANCE] Creating image
INFO novalite.virt.libvirt.driver [-] [instance: INSTANCE] Instance spawned successfully.
"""

# A forced host comes without limits.
UNLIMITED = """\
INFO novalite.compute.manager [REQUEST USER PROJECT - - -] {}
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Attempting claim: memory 512 MB, disk 1 GB, vcpus 1 CPU
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Total memory: 7823 MB, used: 1024.00 MB
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
memory limit not specified, defaulting to unlimited
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Total disk: 49 GB, used: 1.00 GB
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
disk limit not specified, defaulting to unlimited
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Total vcpu: 1 VCPU, used: 1.00 VCPU
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
vcpu limit not specified, defaulting to unlimited
INFO novalite.compute.claims [REQUEST USER PROJECT - - -] [instance: INSTANCE] Claim successful
INFO novalite.scheduler.client.report [REQUEST USER PROJECT - - -] [instance: INSTANCE] \
Submitted allocation for instance
INFO novalite.virt.libvirt.driver [REQUEST USER PROJECT - - -] [instance: INSTANCE] Creating image
INFO novalite.virt.libvirt.driver [-] [instance: INSTANCE] Instance spawned successfully.
"""

AUDIT = [
    "Total usable vcpus: 1, total allocated vcpus: {vcpus}",
    "Final resource view: name=compute1 phys_ram=7823MB used_ram={memory}MB phys_disk=49GB "
    "used_disk={disk}GB total_vcpus=1 used_vcpus={vcpus} pci_stats=[]",
    "Compute_service record updated for compute1:compute1",
]

REFUSED = (
    "Insufficient compute resources: Free memory -265.50 MB < requested 512 MB; "
    "Free disk -7.00 GB < requested 1 GB."
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server of the tests, with what its log lines carry."""

    uuid: str
    request_id: str
    user: str
    project: str

    def fill(self, text: str) -> list[str]:
        """Return the expected lines for this server."""
        for word, value in (
            ("REQUEST", self.request_id),
            ("USER", self.user),
            ("PROJECT", self.project),
            ("INSTANCE", self.uuid),
        ):
            text = text.replace(word, value)
        return text.splitlines()


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    made = make_class_cloud(auth="keystone", config={"fake_libvirt": HOST})
    made.api.flavor("m1.tiny", ram=512)
    return made


def boot(cloud: Cloud, status: str = "ACTIVE", **fields: str) -> Server:
    """Boot a 512 MB server on the network, as the administrator."""
    api = cloud.api
    flavor = next(f["id"] for f in api.get("/flavors")["flavors"] if f["name"] == "m1.tiny")
    answer = api.create("logs", flavor=flavor, networks="auto", **fields)
    shown = api.wait(str(answer.body["server"]["id"]), status)
    request_id = answer.headers["x-openstack-request-id"]
    return Server(shown["id"], request_id, shown["user_id"], shown["tenant_id"])


@pytest.fixture(scope="class")
def server(cloud: Cloud) -> Server:
    return boot(cloud)


def of_boot(cloud: Cloud, server: Server) -> list[str]:
    """Return the shapes of the lines that the host wrote about a boot, up to its spawn."""
    found = [
        line
        for line in lines.read(cloud, "compute1")
        if line.logger in ON_THE_HOST
        and (line.request == server.request_id or line.instance == server.uuid)
    ]
    last = next(i for i, line in enumerate(found) if line.text.startswith("Instance spawned"))
    return [line.shape for line in found[: last + 1]]


def audits(cloud: Cloud, text: str) -> list[list[lines.Line]]:
    """Return the audits, three lines each, whose last resource view has *text*."""
    found = [line for line in lines.read(cloud, "compute1") if line.logger == TRACKER]
    views = [found[index : index + 3] for index in range(0, len(found) - 2, 3)]
    return [view for view in views if text in view[1].text]


def generic(text: str) -> str:
    """Return a sample's line without what differs from boot to boot."""
    text = re.sub(r"^\S+ \S+ \d+ ", "", text).replace(" nova.", " novalite.")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{32}\b", "X", text)
    text = re.sub(r"name=\S+", "name=X", text)
    return re.sub(r"record updated for \S+", "record updated for X", text)


class TestBoot:
    """What the host and the API write about boots and their end."""

    def test_a_boot(self, cloud: Cloud, server: Server) -> None:
        assert of_boot(cloud, server) == server.fill(BOOT)

    def test_the_next_audit(self, cloud: Cloud, server: Server) -> None:
        view = eventually(lambda: audits(cloud, "used_ram=1024MB"))[0]
        wanted = [text.format(vcpus=1, memory=1024, disk=1) for text in AUDIT]
        assert [line.text for line in view] == wanted
        assert {line.level for line in view} == {"INFO"}
        assert {line.columns for line in view} == {"- - - - -"}
        (request,) = {line.request for line in view}
        assert request.startswith("req-") and request != server.request_id

    @pytest.mark.skipif(not SAMPLES.is_dir(), reason="there are no logs of a real host here")
    def test_every_line_of_a_real_host_is_here_too(self, cloud: Cloud, server: Server) -> None:
        eventually(lambda: audits(cloud, "used_ram=1024MB"))
        loggers = [name.replace("novalite", "nova") for name in (*ON_THE_HOST, TRACKER)]
        ours = {generic(line) for line in cloud.log("compute1").splitlines()}
        real = (SAMPLES / "nova-compute.log").read_text().splitlines()
        theirs = {generic(line) for line in real if any(name in line for name in loggers)}
        assert theirs and theirs <= ours

    @pytest.mark.parametrize("project", [False, True])
    def test_the_access_log(self, cloud: Cloud, server: Server, project: bool) -> None:
        api = cloud.api
        if project:
            api.url += f"/{server.project}"
        answer = api.request("GET", f"/servers/{server.uuid}")
        path = f"/v2.1/{server.project}/servers" if project else "/v2.1/servers"
        line = eventually(lambda: cloud.grep("api", answer.headers["x-openstack-request-id"]))[0]
        shape = re.compile(
            rf"INFO novalite\.osapi_compute\.wsgi\.server \[(req-[0-9a-f-]{{36}}) {server.user} "
            rf"{server.project} - default default\] 127\.0\.0\.1 "
            rf'"GET {path}/{server.uuid} HTTP/1\.1" status: 200 len: (\d+) time: \d\.\d{{7}}'
        )
        match = lines.LINE.fullmatch(line)
        assert match is not None
        found = shape.fullmatch(match["shape"])
        assert found is not None, line
        assert found[1] == answer.headers["x-openstack-request-id"]
        assert found[2] == answer.headers["content-length"]

    def test_no_valid_host(self, cloud: Cloud, server: Server) -> None:
        flavor = cloud.api.flavor("big", ram=7824)
        uuid = cloud.api.boot(flavor=flavor)
        assert "No valid host was found." in cloud.api.wait(uuid, "ERROR")["fault"]["message"]
        found = [line for line in lines.read(cloud, "scheduler") if line.logger == FILTERS]
        assert [line.text for line in found] == [
            "Filter RamFilter returned 0 hosts",
            "Filtering removed all hosts for the request with instance ID "
            f"'{uuid}'. Filter results: ['ComputeFilter: (start: 1, end: 1)', "
            "'RetryFilter: (start: 1, end: 1)', 'AvailabilityZoneFilter: (start: 1, end: 1)', "
            "'RamFilter: (start: 1, end: 0)']",
        ]
        assert {(line.level, line.columns) for line in found} == {
            ("INFO", f"{server.user} {server.project} - - -")
        }
        cloud.api.delete(uuid)

    def test_a_boot_without_limits(self, cloud: Cloud, server: Server) -> None:
        forced = boot(cloud, availability_zone="nova:compute1")
        assert of_boot(cloud, forced) == forced.fill(UNLIMITED)
        cloud.api.delete(forced.uuid)
        cloud.api.wait_gone(forced.uuid)

    def test_a_delete(self, cloud: Cloud, server: Server) -> None:
        answer = cloud.api.request("DELETE", f"/servers/{server.uuid}")
        cloud.api.wait_gone(server.uuid)
        request = answer.headers["x-openstack-request-id"]
        (line,) = cloud.grep("compute1", rf"{request} .*deallocate network")
        match = lines.LINE.fullmatch(line)
        assert match is not None
        assert re.fullmatch(
            rf"INFO novalite\.compute\.manager \[{request} {server.user} {server.project} - - -\] "
            rf"\[instance: {server.uuid}\] "
            r"Took \d+\.\d\d seconds to deallocate network for instance\.",
            match["shape"],
        )
        eventually(lambda: "used_ram=512MB" in audits(cloud, "")[-1][1].text)
        cloud.assert_books()

    def test_a_claim_that_does_not_fit(self, cloud: Cloud, server: Server) -> None:
        # The scheduler goes on with its picture of an empty host.
        down_time = {"DEFAULT": {"service_down_time": 600}}
        cloud.configure({"testing": {"refresh_delay": 600}, **down_time}, "scheduler")
        cloud.reload("scheduler")
        reserved = {"reserved_host_memory_mb": 12000, "reserved_host_disk_mb": 56 * 1024}
        cloud.configure({"DEFAULT": reserved}, "compute1")
        cloud.reload("compute1")
        refused = boot(cloud, "ERROR")
        told = [
            line
            for line in lines.read(cloud, "compute1")
            if line.logger == CLAIMS and line.instance == refused.uuid
        ]
        assert [line.text for line in told[1:5]] == [
            "Total memory: 7823 MB, used: 12000.00 MB",
            "memory limit: 11734.50 MB, free: -265.50 MB",
            "Total disk: 49 GB, used: 56.00 GB",
            "disk limit: 49.00 GB, free: -7.00 GB",
        ]
        assert {line.level for line in told} == {"INFO"}
        assert told[-1].text.startswith(REFUSED)
