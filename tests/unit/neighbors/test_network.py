# SPDX-License-Identifier: Apache-2.0
import ipaddress
from typing import Any

import pytest

from tests.unit.neighbors.support import Cloud, User


def make(user: User, kind: str, expect: int = 201, **values: Any) -> Any:
    path = f"/v2.0/{kind.replace('_', '-')}s"
    answer = user("network", "POST", path, {kind: values}, expect)
    return answer[kind] if expect == 201 else answer["NeutronError"]


def listed(user: User, kind: str, query: str = "") -> list[Any]:
    path = f"/v2.0/{kind.replace('_', '-')}s"
    found: list[Any] = user("network", "GET", path, query_string=query)[f"{kind}s"]
    return found


def item(
    user: User, method: str, kind: str, record_id: str, expect: int = 200, **values: Any
) -> Any:
    path = f"/v2.0/{kind.replace('_', '-')}s/{record_id}"
    answer = user("network", method, path, {kind: values} if method == "PUT" else None, expect)
    return answer.get(kind, answer.get("NeutronError", answer))


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return cloud.user()


@pytest.fixture
def demo(cloud: Cloud) -> User:
    return cloud.user("demo", "demo")


@pytest.fixture
def private(admin: User) -> Any:
    return listed(admin, "network", "name=private")[0]


def own_network(user: User, cidr: str = "192.168.1.0/24", **subnet: Any) -> tuple[Any, Any]:
    network = make(user, "network", name="own")
    return network, make(user, "subnet", network_id=network["id"], cidr=cidr, **subnet)


def test_versions_and_extensions(cloud: Cloud, demo: User) -> None:
    answer = cloud.network.simulate_get("/")
    assert answer.json["versions"][0]["id"] == "v2.0"
    assert cloud.network.simulate_get("/v2.0/").status_code == 200
    aliases = {item["alias"] for item in listed(demo, "extension")}
    assert {"security-group", "router", "external-net", "binding", "quotas"} <= aliases
    demo("network", "GET", "/v2.0/extensions/router")
    demo("network", "GET", "/v2.0/extensions/nothing", expect=404)


def test_errors_have_neutrons_shape(cloud: Cloud, demo: User) -> None:
    error = cloud.network.simulate_get("/v2.0/networks").json["NeutronError"]
    assert set(error) == {"type", "message", "detail"}
    error = item(demo, "GET", "network", "private", 404)
    assert error["type"] == "NetworkNotFound"
    assert "private" in error["message"]
    for method, path in (("GET", "/v2.0/nothing"), ("DELETE", "/v2.0/networks/")):
        demo("network", method, path, expect=404)
    error = make(demo, "network", 400, colour="red")
    assert "colour" in error["message"]
    error = make(demo, "network", 400, admin_state_up="yes")
    assert "admin_state_up" in error["message"]


def test_seeded_networks_are_seen_by_all(demo: User) -> None:
    found = {network["name"]: network for network in listed(demo, "network")}
    assert found["private"]["shared"] and not found["private"]["router:external"]
    assert found["public"]["router:external"] and not found["public"]["shared"]
    assert all(len(network["subnets"]) == 1 for network in found.values())
    subnets = {subnet["name"]: subnet for subnet in listed(demo, "subnet")}
    assert "public-subnet" not in subnets
    assert ipaddress.ip_network(subnets["private-subnet"]["cidr"]).num_addresses > 60000
    assert [network["name"] for network in listed(demo, "network", "router:external=True")] == [
        "public"
    ]
    assert [network["name"] for network in listed(demo, "network", "shared=true")] == ["private"]


def test_a_network_is_its_projects_alone(cloud: Cloud, admin: User, demo: User) -> None:
    network, subnet = own_network(admin)
    port = make(admin, "port", network_id=network["id"])
    for kind, record in (("network", network), ("subnet", subnet), ("port", port)):
        item(demo, "GET", kind, record["id"], 404)
        item(demo, "PUT", kind, record["id"], 404, name="x")
        item(demo, "DELETE", kind, record["id"], 404)
        assert record["id"] not in [found["id"] for found in listed(demo, kind)]
        assert record["tenant_id"] == record["project_id"] == cloud.project_id("admin")
    make(demo, "port", 404, network_id=network["id"])
    make(demo, "subnet", 404, network_id=network["id"], cidr="10.9.0.0/24")


def test_what_is_for_administrators(cloud: Cloud, demo: User, private: Any) -> None:
    make(demo, "network", 403, shared=True)
    make(demo, "network", 403, **{"router:external": True})
    make(demo, "network", 403, project_id=cloud.project_id("admin"))
    item(demo, "PUT", "network", private["id"], 403, name="mine")
    item(demo, "DELETE", "network", private["id"], 403)
    make(demo, "port", 403, network_id=private["id"], **{"binding:host_id": "h"})
    make(demo, "port", 403, network_id=private["id"], device_owner="network:dhcp")
    port = make(demo, "port", network_id=private["id"])
    assert "binding:host_id" not in port
    assert port["binding:vnic_type"] == "normal"


def test_port_shape(admin: User, private: Any) -> None:
    port = make(admin, "port", network_id=private["id"], device_id="d", **{"binding:host_id": "h1"})
    assert port["status"] == "ACTIVE"
    assert port["binding:vif_type"] == "ovs"
    assert port["mac_address"].startswith("fa:16:3e:")
    assert len(port["security_groups"]) == 1
    assert port["fixed_ips"][0]["subnet_id"] == private["subnets"][0]
    assert port["created_at"].endswith("Z")
    unbound = item(admin, "PUT", "port", port["id"], **{"binding:host_id": None, "device_id": ""})
    assert unbound["status"] == "DOWN"
    assert unbound["binding:vif_type"] == "unbound"
    assert unbound["revision_number"] == port["revision_number"] + 1


def test_ports_are_found_by_device_network_and_address(admin: User, private: Any) -> None:
    first = make(admin, "port", network_id=private["id"], device_id="d1", name="n1")
    make(admin, "port", network_id=private["id"], device_id="d2")
    address = first["fixed_ips"][0]["ip_address"]
    for query in (
        "device_id=d1",
        "name=n1",
        f"id={first['id']}",
        f"network_id={private['id']}&fixed_ips=ip_address%3D{address}",
        f"mac_address={first['mac_address']}",
        "device_id=d1&device_id=d3",
    ):
        assert [port["id"] for port in listed(admin, "port", query)] == [first["id"]], query
    assert len(listed(admin, "port", f"network_id={private['id']}")) == 2
    assert listed(admin, "port", "device_id=d9") == []
    assert listed(admin, "port", "device_id=d1&fields=id") == [{"id": first["id"]}]


def test_bulk_is_all_or_nothing(admin: User, private: Any) -> None:
    good, bad = {"network_id": private["id"]}, {"network_id": "nowhere"}
    admin("network", "POST", "/v2.0/ports", {"ports": [good, bad]}, 404)
    assert listed(admin, "port") == []
    made = admin("network", "POST", "/v2.0/ports", {"ports": [good, good]}, 201)["ports"]
    assert len({port["id"] for port in made}) == 2
    assert len({port["fixed_ips"][0]["ip_address"] for port in made}) == 2


def test_wanted_address(admin: User) -> None:
    network, subnet = own_network(admin)
    wanted = [{"ip_address": "192.168.1.77"}]
    port = make(admin, "port", network_id=network["id"], fixed_ips=wanted)
    assert port["fixed_ips"] == [{"subnet_id": subnet["id"], "ip_address": "192.168.1.77"}]
    error = make(admin, "port", 409, network_id=network["id"], fixed_ips=wanted)
    assert error["type"] == "IpAddressAlreadyAllocated"
    outside = [{"ip_address": "10.1.1.1"}]
    error = make(admin, "port", 400, network_id=network["id"], fixed_ips=outside)
    assert error["type"] == "InvalidIpForNetwork"
    by_subnet = [{"subnet_id": subnet["id"]}]
    assert make(admin, "port", network_id=network["id"], fixed_ips=by_subnet)["fixed_ips"]
    assert make(admin, "port", network_id=network["id"], fixed_ips=[])["fixed_ips"] == []
    for bad in ([{"colour": "red"}], ["x"], [{"ip_address": "x"}], [{"subnet_id": "x"}]):
        make(admin, "port", 400, network_id=network["id"], fixed_ips=bad)


def test_an_address_is_free_again_after_delete_and_update(admin: User) -> None:
    network, _subnet = own_network(admin)
    wanted = [{"ip_address": "192.168.1.77"}]
    port = make(admin, "port", network_id=network["id"], fixed_ips=wanted)
    moved = item(admin, "PUT", "port", port["id"], fixed_ips=[{"ip_address": "192.168.1.78"}])
    assert moved["fixed_ips"][0]["ip_address"] == "192.168.1.78"
    again = make(admin, "port", network_id=network["id"], fixed_ips=wanted)
    item(admin, "DELETE", "port", again["id"], 204)
    make(admin, "port", network_id=network["id"], fixed_ips=wanted)


def test_mac_is_unique_in_a_network(admin: User, private: Any) -> None:
    mac = "fa:16:3e:00:00:01"
    make(admin, "port", network_id=private["id"], mac_address=mac)
    error = make(admin, "port", 409, network_id=private["id"], mac_address=mac.upper())
    assert error["type"] == "MacAddressInUse"
    make(admin, "port", 400, network_id=private["id"], mac_address="x")


def test_subnet_shape_and_checks(admin: User) -> None:
    network, subnet = own_network(admin, dns_nameservers=["1.1.1.1"])
    assert subnet["gateway_ip"] == "192.168.1.1"
    assert subnet["allocation_pools"] == [{"start": "192.168.1.2", "end": "192.168.1.254"}]
    assert subnet["ip_version"] == 4
    for cidr, word in (
        ("192.168.1.128/25", "overlaps with another subnet"),
        ("10.5.0.1/24", "10.5.0.0/24"),
        ("nonsense", "nonsense"),
        (None, "cidr"),
    ):
        error = make(admin, "subnet", 400, network_id=network["id"], cidr=cidr)
        assert word in error["message"]
    second = make(admin, "network", name="second")
    error = make(admin, "subnet", 400, network_id=second["id"], cidr="192.168.1.0/28")
    assert "overlaps with another subnet" in error["message"]
    none = make(admin, "subnet", network_id=second["id"], cidr="10.5.0.0/24", gateway_ip=None)
    assert none["gateway_ip"] is None
    pools = [{"start": "10.6.0.5", "end": "10.6.0.6"}]
    limited = {"network_id": second["id"], "cidr": "10.6.0.0/24", "allocation_pools": pools}
    assert make(admin, "subnet", **limited)["allocation_pools"] == pools
    outside = [{"start": "10.7.1.5", "end": "10.7.1.6"}]
    limited = {"network_id": second["id"], "cidr": "10.7.0.0/24", "allocation_pools": outside}
    make(admin, "subnet", 400, **limited)
    sixth = make(admin, "subnet", network_id=second["id"], cidr="fd00::/64", ip_version=6)
    assert sixth["ip_version"] == 6
    port = make(admin, "port", network_id=second["id"])
    versions = {ipaddress.ip_address(ip["ip_address"]).version for ip in port["fixed_ips"]}
    assert versions == {4, 6}
    for ip in port["fixed_ips"]:
        query = f"fixed_ips=ip_address%3D{ip['ip_address']}"
        assert [found["id"] for found in listed(admin, "port", query)] == [port["id"]]


def test_what_is_in_use_stays(admin: User) -> None:
    network, subnet = own_network(admin)
    port = make(admin, "port", network_id=network["id"])
    assert item(admin, "DELETE", "network", network["id"], 409)["type"] == "NetworkInUse"
    assert item(admin, "DELETE", "subnet", subnet["id"], 409)["type"] == "SubnetInUse"
    item(admin, "DELETE", "port", port["id"], 204)
    item(admin, "DELETE", "network", network["id"], 204)
    item(admin, "GET", "subnet", subnet["id"], 404)


def test_default_group_is_made_when_it_is_needed(cloud: Cloud, admin: User, demo: User) -> None:
    groups = listed(demo, "security_group")
    assert [group["name"] for group in groups] == ["default"]
    assert len(groups[0]["security_group_rules"]) == 4
    assert listed(demo, "security_group")[0]["id"] == groups[0]["id"]
    assert make(demo, "security_group", 409, name="default")
    item(demo, "DELETE", "security_group", groups[0]["id"], 409)
    query = f"project_id={cloud.project_id('demo')}&name=default"
    assert [group["id"] for group in listed(admin, "security_group", query)] == [groups[0]["id"]]
    item(admin, "DELETE", "security_group", groups[0]["id"], 204)
    assert listed(admin, "security_group", query) == []


def test_security_groups_on_ports(admin: User, demo: User, private: Any) -> None:
    group = make(demo, "security_group", name="web")
    assert len(group["security_group_rules"]) == 2
    port = make(demo, "port", network_id=private["id"], security_groups=[group["id"]])
    assert port["security_groups"] == [group["id"]]
    error = item(demo, "DELETE", "security_group", group["id"], 409)
    assert error["type"] == "SecurityGroupInUse"
    foreign = make(admin, "security_group", name="theirs")
    make(demo, "port", 404, network_id=private["id"], security_groups=[foreign["id"]])
    item(demo, "PUT", "security_group", group["id"], 409, name="default")
    item(demo, "PUT", "port", port["id"], security_groups=[])
    item(demo, "DELETE", "security_group", group["id"], 204)


def test_security_group_rules(demo: User) -> None:
    group = make(demo, "security_group", name="web")
    asked = {
        "security_group_id": group["id"],
        "direction": "ingress",
        "protocol": "tcp",
        "port_range_min": 22,
        "port_range_max": 22,
        "remote_ip_prefix": "10.0.0.1/8",
    }
    rule = make(demo, "security_group_rule", **asked)
    assert rule["remote_ip_prefix"] == "10.0.0.0/8"
    assert rule["ethertype"] == "IPv4"
    assert make(demo, "security_group_rule", 409, **asked)["type"] == "SecurityGroupRuleExists"
    for change in (
        {"direction": "up"},
        {"ethertype": "IPX"},
        {"port_range_min": 30},
        {"port_range_min": 70000},
        {"port_range_min": -1},
        {"port_range_min": None},
        {"protocol": "carrier-pigeon"},
        {"protocol": 256},
        {"protocol": "icmp", "port_range_min": 300},
        {"protocol": "icmp", "port_range_min": None},
        {"protocol": None},
        {"remote_ip_prefix": "x"},
        {"ethertype": "IPv6"},
        {"remote_group_id": group["id"]},
    ):
        make(demo, "security_group_rule", 400, **{**asked, **change})
    make(demo, "security_group_rule", 404, **{**asked, "security_group_id": "x"})
    query = f"security_group_id={group['id']}"
    assert len(listed(demo, "security_group_rule", query)) == 3
    item(demo, "DELETE", "security_group_rule", rule["id"], 204)
    assert len(item(demo, "GET", "security_group", group["id"])["security_group_rules"]) == 2


def test_routers(admin: User, demo: User) -> None:
    public = listed(demo, "network", "name=public")[0]
    network, subnet = own_network(demo)
    gateway = {"network_id": public["id"]}
    router = make(demo, "router", name="r", external_gateway_info=gateway)
    assert router["external_gateway_info"]["external_fixed_ips"][0]["ip_address"]
    path = f"/v2.0/routers/{router['id']}"
    asked = {"subnet_id": subnet["id"]}
    answer = demo("network", "PUT", f"{path}/add_router_interface", asked)
    assert answer["subnet_id"] == subnet["id"]
    demo("network", "PUT", f"{path}/add_router_interface", asked, 400)
    port = item(demo, "GET", "port", answer["port_id"])
    assert port["fixed_ips"][0]["ip_address"] == subnet["gateway_ip"]
    assert item(demo, "DELETE", "port", port["id"], 409)["type"] == "ServicePortInUse"
    assert item(demo, "DELETE", "router", router["id"], 409)["type"] == "RouterInUse"
    assert item(demo, "DELETE", "network", network["id"], 409)["type"] == "NetworkInUse"
    demo("network", "PUT", f"{path}/remove_router_interface", asked)
    demo("network", "PUT", f"{path}/remove_router_interface", asked, 404)
    item(demo, "DELETE", "router", router["id"], 204)
    item(demo, "DELETE", "network", network["id"], 204)
    assert listed(admin, "port") == []
    make(demo, "router", 400, external_gateway_info={"network_id": network_of(demo)})


def network_of(user: User) -> str:
    return str(make(user, "network", name="inner")["id"])


def test_floating_ips(demo: User, private: Any) -> None:
    public = listed(demo, "network", "name=public")[0]
    port = make(demo, "port", network_id=private["id"])
    floating = make(demo, "floatingip", floating_network_id=public["id"], port_id=port["id"])
    assert floating["status"] == "ACTIVE"
    assert floating["fixed_ip_address"] == port["fixed_ips"][0]["ip_address"]
    query = f"port_id={port['id']}"
    assert [found["id"] for found in listed(demo, "floatingip", query)] == [floating["id"]]
    query = f"floating_ip_address={floating['floating_ip_address']}"
    assert len(listed(demo, "floatingip", query)) == 1
    make(demo, "floatingip", 409, floating_network_id=public["id"], port_id=port["id"])
    make(demo, "floatingip", 400, floating_network_id=private["id"])
    item(demo, "DELETE", "port", port["id"], 204)
    left = item(demo, "GET", "floatingip", floating["id"])
    assert left["port_id"] is None and left["status"] == "DOWN"
    network, subnet = own_network(demo)
    router = make(demo, "router", external_gateway_info={"network_id": public["id"]})
    path = f"/v2.0/routers/{router['id']}/add_router_interface"
    demo("network", "PUT", path, {"subnet_id": subnet["id"]})
    port = make(demo, "port", network_id=network["id"])
    moved = item(demo, "PUT", "floatingip", floating["id"], port_id=port["id"])
    assert moved["router_id"] == router["id"] and moved["status"] == "ACTIVE"
    item(demo, "DELETE", "floatingip", floating["id"], 204)


def test_quotas(cloud: Cloud, admin: User, demo: User, private: Any) -> None:
    path = f"/v2.0/quotas/{cloud.project_id('demo')}"
    assert demo("network", "GET", path)["quota"]["port"] == -1
    demo("network", "PUT", path, {"quota": {"port": 5}}, 403)
    admin("network", "PUT", path, {"quota": {"port": 1}})
    make(demo, "port", network_id=private["id"])
    assert make(demo, "port", 409, network_id=private["id"])["type"] == "OverQuota"
    details = demo("network", "GET", f"{path}/details")["quota"]["port"]
    assert details == {"limit": 1, "used": 1, "reserved": 0}
    assert demo("network", "GET", f"{path}/default")["quota"]["port"] == -1
    admin("network", "PUT", path, {"quota": {"port": -2}}, 400)
    admin("network", "DELETE", path, expect=204)
    make(demo, "port", network_id=private["id"])


def test_tags_sorting_and_paging(demo: User) -> None:
    networks = [make(demo, "network", name=name) for name in ("b", "a", "c")]
    path = f"/v2.0/networks/{networks[0]['id']}/tags"
    assert demo("network", "PUT", path, {"tags": ["x", "y"]})["tags"] == ["x", "y"]
    assert [found["name"] for found in listed(demo, "network", "tags=x")] == ["b"]
    assert [found["name"] for found in listed(demo, "network", "not-tags=x&name=b")] == []
    query = "sort_key=name&sort_dir=asc&limit=2&shared=False&router:external=False"
    page = demo("network", "GET", "/v2.0/networks", query_string=query)
    assert [found["name"] for found in page["networks"]] == ["a", "b"]
    query = page["networks_links"][0]["href"].partition("?")[2]
    page = demo("network", "GET", "/v2.0/networks", query_string=query)
    assert [found["name"] for found in page["networks"]] == ["c"]
    assert page["networks_links"] == []
