# SPDX-License-Identifier: Apache-2.0
import uuid
from typing import Any

import pytest
import requests

from novalite import context, exception
from novalite.network import client
from novalite.objects.request_spec import NetworkRequest
from tests.unit.neighbors.support import Clock, Cloud, User, Wire


@pytest.fixture
def networks(cloud: Cloud, wire: Wire) -> client.NetworkClient:
    return client.NetworkClient(cloud.conf)


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return cloud.user()


@pytest.fixture
def ctxt(cloud: Cloud) -> context.RequestContext:
    return asker(cloud)


def asker(cloud: Cloud, project: str = "demo", **values: Any) -> context.RequestContext:
    return context.RequestContext(
        user_id="u", project_id=cloud.project_id(project), overwrite=False, **values
    )


def network(cloud: Cloud, name: str = "private") -> str:
    with cloud.store.read() as tx:
        return str(tx.find("network", name=name)[0]["id"])


def make_network(user: User, cidr: str | None = "192.168.1.0/24", **values: Any) -> str:
    body = {"network": {"name": "own", **values}}
    made = user("network", "POST", "/v2.0/networks", body, 201)["network"]
    if cidr:
        subnet = {"subnet": {"network_id": made["id"], "cidr": cidr}}
        user("network", "POST", "/v2.0/subnets", subnet, 201)
    return str(made["id"])


def make_port(user: User, network_id: str, **values: Any) -> Any:
    body = {"port": {"network_id": network_id, **values}}
    return user("network", "POST", "/v2.0/ports", body, 201)["port"]


def ports_of(user: User, device_id: str) -> list[Any]:
    query = f"device_id={device_id}"
    found: list[Any] = user("network", "GET", "/v2.0/ports", query_string=query)["ports"]
    return found


def server() -> str:
    return str(uuid.uuid4())


class TestValidate:
    def test_auto_takes_the_one_network(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        assert networks.validate(ctxt, None, 1) == [NetworkRequest(network_id=network(cloud))]

    def test_auto_without_any_network_is_none(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        admin("network", "DELETE", f"/v2.0/networks/{network(cloud)}", expect=204)
        make_network(admin)
        assert networks.validate(ctxt, None, 1) == []

    def test_auto_with_several_is_ambiguous(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        make_network(cloud.user("demo", "demo"))
        with pytest.raises(exception.NetworkAmbiguous):
            networks.validate(ctxt, None, 1)

    def test_none_asks_nothing(
        self, networks: client.NetworkClient, wire: Wire, ctxt: context.RequestContext
    ) -> None:
        assert networks.validate(ctxt, [], 1) == []
        assert wire.requests == []

    def test_order_address_and_tag_are_kept_in_one_request(
        self, cloud: Cloud, networks: client.NetworkClient, wire: Wire, ctxt: context.RequestContext
    ) -> None:
        own = make_network(cloud.user("demo", "demo"))
        asked = [
            NetworkRequest(network_id=own, tag="a"),
            NetworkRequest(network_id=network(cloud)),
            NetworkRequest(network_id=own, tag="b"),
        ]
        assert networks.validate(ctxt, asked, 5) == asked
        assert len(wire.of("/v2.0/networks")) == 1

    @pytest.mark.parametrize("name", ["unknown", "foreign"])
    def test_network_that_the_project_cannot_see(
        self, networks: client.NetworkClient, ctxt: context.RequestContext, admin: User, name: str
    ) -> None:
        network_id = make_network(admin) if name == "foreign" else "private"
        with pytest.raises(exception.NetworkInBodyNotFound) as caught:
            networks.validate(ctxt, [NetworkRequest(network_id=network_id)], 1)
        assert network_id in caught.value.message()

    def test_administrators_use_any_network(
        self, cloud: Cloud, networks: client.NetworkClient, admin: User
    ) -> None:
        asked = [NetworkRequest(network_id=make_network(admin))]
        assert networks.validate(asker(cloud, roles=["admin"]), asked, 1) == asked

    def test_external_network_is_forbidden(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        with pytest.raises(exception.ExternalNetworkAttachForbidden):
            networks.validate(ctxt, [NetworkRequest(network_id=network(cloud, "public"))], 1)

    def test_network_without_subnet(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        bare = make_network(cloud.user("demo", "demo"), cidr=None)
        with pytest.raises(exception.NetworkRequiresSubnet):
            networks.validate(ctxt, [NetworkRequest(network_id=bare)], 1)

    def test_fixed_address(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        private = network(cloud)
        asked = [NetworkRequest(network_id=private, fixed_ip="10.0.7.7")]
        assert networks.validate(ctxt, asked, 1) == asked
        with pytest.raises(exception.InvalidFixedIpAndMaxCountRequest):
            networks.validate(ctxt, asked, 2)
        for wrong in ("192.168.9.9", "x", "fd00::1"):
            with pytest.raises(exception.FixedIpInvalid):
                bad = NetworkRequest(network_id=private, fixed_ip=wrong)
                networks.validate(ctxt, [bad], 1)
        taken = make_port(cloud.user(), private)["fixed_ips"][0]["ip_address"]
        with pytest.raises(exception.FixedIpAlreadyInUse):
            networks.validate(ctxt, [NetworkRequest(network_id=private, fixed_ip=taken)], 1)

    def test_port(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        private = network(cloud)
        port = make_port(cloud.user("demo", "demo"), private)
        asked = NetworkRequest(port_id=port["id"], tag="t")
        found = networks.validate(ctxt, [asked], 1)
        assert found == [NetworkRequest(network_id=private, port_id=port["id"], tag="t")]
        with pytest.raises(exception.MultiplePortsNotApplicable):
            networks.validate(ctxt, [asked], 2)
        with pytest.raises(exception.PortInUse):
            networks.validate(ctxt, [asked, asked], 1)

    def test_port_that_cannot_be_used(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        private, demo = network(cloud), cloud.user("demo", "demo")
        used = make_port(demo, private, device_id="d")
        bare = make_port(demo, private, fixed_ips=[])
        foreign = make_port(cloud.user(), private)
        for port_id, error in (
            (used["id"], exception.PortInUse),
            (bare["id"], exception.PortRequiresFixedIP),
            (foreign["id"], exception.PortInBodyNotFound),
            (server(), exception.PortInBodyNotFound),
        ):
            with pytest.raises(error) as caught:
                networks.validate(ctxt, [NetworkRequest(port_id=port_id)], 1)
            assert port_id in caught.value.message()

    def test_a_request_names_something(
        self, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        with pytest.raises(exception.InvalidInput):
            networks.validate(ctxt, [NetworkRequest(fixed_ip="10.0.0.5")], 1)


class TestSecurityGroups:
    def test_default_is_left_to_the_service(
        self, networks: client.NetworkClient, wire: Wire, ctxt: context.RequestContext
    ) -> None:
        assert networks.security_groups(ctxt, []) == []
        assert networks.security_groups(ctxt, ["default"]) == []
        assert wire.requests == []

    def test_by_name_and_id(
        self, cloud: Cloud, networks: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        demo = cloud.user("demo", "demo")
        ids = [make_group(demo, name) for name in ("a", "b")]
        assert networks.security_groups(ctxt, ["b", ids[0], "a"]) == [ids[1], ids[0]]
        assert len(networks.security_groups(ctxt, ["a", "default"])) == 2

    def test_unknown_foreign_and_doubtful(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        foreign = make_group(admin, "theirs")
        for name in ("theirs", foreign, "nothing"):
            with pytest.raises(exception.SecurityGroupInBodyNotFound, match=name):
                networks.security_groups(ctxt, [name])
        demo = cloud.user("demo", "demo")
        first = make_group(demo, "twice")
        make_group(demo, "twice")
        with pytest.raises(exception.SecurityGroupNotUnique):
            networks.security_groups(ctxt, ["twice"])
        assert networks.security_groups(ctxt, [first]) == [first]


def make_group(user: User, name: str) -> str:
    body = {"security_group": {"name": name}}
    made = user("network", "POST", "/v2.0/security-groups", body, 201)
    return str(made["security_group"]["id"])


class TestAllocate:
    def test_port_is_made_for_project_and_host(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_, private = server(), network(cloud)
        asked = [NetworkRequest(network_id=private, tag="t")]
        found = networks.allocate(ctxt, uuid_, "h1", asked, ["default"], "az1")
        port = ports_of(admin, uuid_)[0]
        assert port["project_id"] == cloud.project_id("demo")
        assert port["binding:host_id"] == "h1"
        assert port["device_owner"] == "compute:az1"
        assert port["status"] == "ACTIVE"
        assert len(port["security_groups"]) == 1
        info = found[0]
        assert (info.port_id, info.network_id) == (port["id"], private)
        assert (info.network_name, info.mac_address) == ("private", port["mac_address"])
        assert info.owned and info.tag == "t" and info.vif_type == "ovs"
        assert info.fixed_ips == [{**port["fixed_ips"][0], "version": 4}]

    def test_zone_address_and_groups(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_, group = server(), make_group(cloud.user("demo", "demo"), "web")
        asked = [NetworkRequest(network_id=network(cloud), fixed_ip="10.0.9.9")]
        networks.allocate(ctxt, uuid_, "h1", asked, ["web"])
        port = ports_of(admin, uuid_)[0]
        assert port["device_owner"] == "compute:nova"
        assert port["fixed_ips"][0]["ip_address"] == "10.0.9.9"
        assert port["security_groups"] == [group]

    def test_no_networks_ask_nothing(
        self, networks: client.NetworkClient, wire: Wire, ctxt: context.RequestContext
    ) -> None:
        assert networks.allocate(ctxt, server(), "h1", [], []) == []
        assert wire.requests == []

    def test_a_second_attempt_uses_the_ports_of_the_first(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_ = server()
        asked = [
            NetworkRequest(network_id=network(cloud)),
            NetworkRequest(network_id=network(cloud), fixed_ip="10.0.9.9"),
        ]
        first = networks.allocate(ctxt, uuid_, "h1", asked, [])
        again = networks.allocate(ctxt, uuid_, "h2", asked, [])
        assert {info.port_id for info in again} == {info.port_id for info in first}
        assert again[1].fixed_ips[0]["ip_address"] == "10.0.9.9"
        assert {port["binding:host_id"] for port in ports_of(admin, uuid_)} == {"h2"}

    def test_surplus_of_an_earlier_attempt_goes(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_ = server()
        asked = [NetworkRequest(network_id=network(cloud))]
        networks.allocate(ctxt, uuid_, "h1", asked * 3, [])
        kept = networks.allocate(ctxt, uuid_, "h1", asked, [])
        assert [port["id"] for port in ports_of(admin, uuid_)] == [kept[0].port_id]

    def test_brought_port_is_bound_and_not_owned(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_ = server()
        port = make_port(cloud.user("demo", "demo"), network(cloud))
        asked = [NetworkRequest(network_id=port["network_id"], port_id=port["id"])]
        for host in ("h1", "h2"):
            found = networks.allocate(ctxt, uuid_, host, asked, [])
            assert [(info.port_id, info.owned) for info in found] == [(port["id"], False)]
            bound = ports_of(admin, uuid_)[0]
            assert bound["binding:host_id"] == host
            assert bound["security_groups"] == port["security_groups"]

    def test_brought_port_that_another_server_got_meanwhile(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        private = network(cloud)
        port = make_port(cloud.user("demo", "demo"), private, device_id="other")
        asked = [
            NetworkRequest(network_id=private),
            NetworkRequest(network_id=private, port_id=port["id"]),
        ]
        uuid_ = server()
        with pytest.raises(exception.PortInUse):
            networks.allocate(ctxt, uuid_, "h1", asked, [])
        assert ports_of(admin, uuid_) == []
        assert [found["id"] for found in ports_of(admin, "other")] == [port["id"]]

    def test_failure_gives_back_what_this_call_made_only(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_, private = server(), network(cloud)
        before = networks.allocate(ctxt, uuid_, "h1", [NetworkRequest(network_id=private)], [])
        brought = make_port(cloud.user("demo", "demo"), private)
        taken = make_port(admin, private)["fixed_ips"][0]["ip_address"]
        asked = [
            NetworkRequest(network_id=private),
            NetworkRequest(network_id=private),
            NetworkRequest(network_id=private, port_id=brought["id"]),
            NetworkRequest(network_id=private, fixed_ip=taken),
        ]
        with pytest.raises(exception.NeighborError) as caught:
            networks.allocate(ctxt, uuid_, "h1", asked, [])
        assert caught.value.kwargs["status"] == 409
        assert taken in caught.value.message()
        assert [port["id"] for port in ports_of(admin, uuid_)] == [before[0].port_id]
        left = admin("network", "GET", f"/v2.0/ports/{brought['id']}")["port"]
        assert (left["device_id"], left["device_owner"]) == ("", "")
        assert left["binding:host_id"] == ""

    def test_port_whose_answer_was_lost_is_given_back(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
        wire: Wire,
    ) -> None:
        uuid_ = server()

        def lose(request: requests.PreparedRequest) -> None:
            if request.method == "POST" and str(request.url).endswith("/ports"):
                raise requests.ConnectionError("reset")

        wire.after = lose
        with pytest.raises(exception.NeighborUnavailable):
            networks.allocate(ctxt, uuid_, "h1", [NetworkRequest(network_id=network(cloud))], [])
        assert len(wire.of("/v2.0/ports")) == 4  # list, create once, list, delete
        assert ports_of(admin, uuid_) == []

    def test_ports_that_another_host_took_over_are_not_given_back(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
        wire: Wire,
    ) -> None:
        uuid_, asked = server(), [NetworkRequest(network_id=network(cloud))]

        def take_over(request: requests.PreparedRequest) -> None:
            if request.method == "POST" and str(request.url).endswith("/ports"):
                wire.after = lambda request: None
                networks.allocate(ctxt, uuid_, "h2", asked, [])
                raise requests.ConnectionError("reset")

        wire.after = take_over
        with pytest.raises(exception.NeighborUnavailable):
            networks.allocate(ctxt, uuid_, "h1", asked, [])
        assert [port["binding:host_id"] for port in ports_of(admin, uuid_)] == ["h2"]

    def test_killed_attempt_leaves_nothing_that_the_next_does_not_find(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
        wire: Wire,
    ) -> None:
        class Killed(BaseException):
            pass

        made: list[str] = []

        def kill(request: requests.PreparedRequest) -> None:
            if request.method == "POST" and "/ports" in str(request.url):
                made.append(str(request.url))
                if len(made) == 2:
                    raise Killed

        uuid_, asked = server(), [NetworkRequest(network_id=network(cloud))] * 2
        wire.after = kill
        with pytest.raises(Killed):
            networks.allocate(ctxt, uuid_, "h1", asked, [])
        assert len(ports_of(admin, uuid_)) == 2
        wire.after = lambda request: None
        networks.allocate(ctxt, uuid_, "h2", asked, [])
        assert len(ports_of(admin, uuid_)) == 2

    def test_failed_binding(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        uuid_ = server()
        create = networks._neutron.create_port
        monkeypatch.setattr(
            networks._neutron,
            "create_port",
            lambda *args: {**create(*args), "binding:vif_type": "binding_failed"},
        )
        with pytest.raises(exception.PortBindingFailed):
            networks.allocate(ctxt, uuid_, "h1", [NetworkRequest(network_id=network(cloud))], [])
        assert ports_of(admin, uuid_) == []

    def test_names_are_remembered_for_a_while(self, cloud: Cloud, wire: Wire) -> None:
        clock = Clock()
        networks = client.NetworkClient(cloud.conf, clock)
        asked = [NetworkRequest(network_id=network(cloud))]
        for _ in range(2):
            networks.allocate(asker(cloud), server(), "h1", asked, [])
        assert len(wire.of("/v2.0/networks")) == 1
        clock.now += cloud.conf.neutron.network_cache_time
        networks.allocate(asker(cloud), server(), "h1", asked, [])
        assert len(wire.of("/v2.0/networks")) == 2


class TestDeallocate:
    def test_own_ports_go_and_brought_ones_stay(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_, private = server(), network(cloud)
        port = make_port(cloud.user("demo", "demo"), private)
        asked = [
            NetworkRequest(network_id=private),
            NetworkRequest(network_id=private, port_id=port["id"]),
        ]
        networks.allocate(ctxt, uuid_, "h1", asked, [])
        # Even a caller that has forgotten what was brought does no harm.
        networks.deallocate(ctxt, uuid_)
        assert ports_of(admin, uuid_) == []
        left = admin("network", "GET", f"/v2.0/ports/{port['id']}")["port"]
        assert left["device_id"] == "" and left["status"] == "DOWN"
        networks.deallocate(ctxt, uuid_)

    def test_ids_that_must_not_be_deleted(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_ = server()
        asked = [NetworkRequest(network_id=network(cloud))]
        made = networks.allocate(ctxt, uuid_, "h1", asked, [])
        networks.deallocate(ctxt, uuid_, {made[0].port_id})
        assert admin("network", "GET", f"/v2.0/ports/{made[0].port_id}")["port"]["device_id"] == ""

    def test_ports_bound_to_another_host_are_left_alone(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
    ) -> None:
        uuid_, asked = server(), [NetworkRequest(network_id=network(cloud))]
        networks.allocate(ctxt, uuid_, "h2", asked, [])
        networks.deallocate(ctxt, uuid_, host="h1")
        assert len(ports_of(admin, uuid_)) == 1
        networks.deallocate(ctxt, uuid_, host="h2")
        assert ports_of(admin, uuid_) == []

    def test_every_port_is_tried(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
        wire: Wire,
    ) -> None:
        uuid_ = server()
        asked = [NetworkRequest(network_id=network(cloud))] * 3
        made = networks.allocate(ctxt, uuid_, "h1", asked, [])

        def refuse(request: requests.PreparedRequest) -> None:
            if request.method == "DELETE" and made[0].port_id in str(request.url):
                raise requests.ReadTimeout("late")

        wire.before = refuse
        with pytest.raises(exception.NeighborUnavailable):
            networks.deallocate(ctxt, uuid_)
        assert [port["id"] for port in ports_of(admin, uuid_)] == [made[0].port_id]

    def test_port_that_vanishes_meanwhile_is_fine(
        self,
        cloud: Cloud,
        networks: client.NetworkClient,
        ctxt: context.RequestContext,
        admin: User,
        wire: Wire,
    ) -> None:
        uuid_ = server()
        asked = [NetworkRequest(network_id=network(cloud))]
        made = networks.allocate(ctxt, uuid_, "h1", asked, [])

        def vanish(request: requests.PreparedRequest) -> None:
            if request.method == "DELETE":
                admin("network", "DELETE", f"/v2.0/ports/{made[0].port_id}", expect=204)

        wire.before = vanish
        networks.deallocate(ctxt, uuid_)


class TestWithoutService:
    @pytest.fixture
    def absent(self, cloud: Cloud) -> client.NetworkClient:
        cloud.conf.set_override("auth_strategy", "noauth2", "api")
        return client.NetworkClient(cloud.conf)

    def test_only_no_network_is_possible(
        self, absent: client.NetworkClient, ctxt: context.RequestContext
    ) -> None:
        assert absent.validate(ctxt, None, 1) == []
        assert absent.validate(ctxt, [], 1) == []
        assert absent.allocate(ctxt, server(), "h1", [], ["default"]) == []
        absent.deallocate(ctxt, server())
        for request, error in (
            (NetworkRequest(network_id="n"), exception.NetworkInBodyNotFound),
            (NetworkRequest(port_id="p"), exception.PortInBodyNotFound),
        ):
            with pytest.raises(error):
                absent.validate(ctxt, [request], 1)
            with pytest.raises(error):
                absent.allocate(ctxt, server(), "h1", [request], [])
        with pytest.raises(exception.SecurityGroupInBodyNotFound):
            absent.security_groups(ctxt, ["web"])


def test_service_that_does_not_answer(
    networks: client.NetworkClient, ctxt: context.RequestContext, wire: Wire
) -> None:
    def refuse(request: requests.PreparedRequest) -> None:
        if "network.test" in str(request.url):
            raise requests.ConnectionError("refused")

    wire.before = refuse
    asked = [NetworkRequest(network_id="n")]
    for call in (
        lambda: networks.validate(ctxt, None, 1),
        lambda: networks.validate(ctxt, asked, 1),
        lambda: networks.security_groups(ctxt, ["web"]),
        lambda: networks.allocate(ctxt, server(), "h1", asked, []),
        lambda: networks.deallocate(ctxt, server()),
    ):
        with pytest.raises(exception.NeighborUnavailable) as caught:
            call()
        assert "network service" in caught.value.message()


def test_one_session_serves_all_clients(cloud: Cloud, wire: Wire) -> None:
    for _ in range(2):
        client.NetworkClient(cloud.conf).validate(asker(cloud), None, 1)
    assert len(wire.of("/v3/auth/tokens")) == 1
