# SPDX-License-Identifier: Apache-2.0
"""/novalite/capacity and /servers/{id}/why-not: what is asked, and what is told to whom."""

import pytest

from novalite.advisor import hosts as rendered
from tests.unit.api.cloud import BIG_IMAGE, FLAVOR
from tests.unit.scheduler import fakes

MEMBER, OTHER, ADMIN = "alice:demo", "bob:other", "admin:admin"


@pytest.fixture
def full(cloud):
    """A cloud with three hosts: one is empty, one has promised more than it has, one is down."""
    cloud.schedulers.states = [
        fakes.host_state("h1"),
        fakes.host_state("h2", memory_mb_used=24300),
        fakes.host_state("h3", up=False),
    ]
    return cloud


def ask(cloud, user=ADMIN, **fields):
    return cloud.call("POST", "/novalite/capacity", {"capacity": fields}, user=user)


def capacity(cloud, **fields):
    result = ask(cloud, flavorRef=FLAVOR, **fields)
    assert result.status_code == 200, result.text
    return result.json


class TestCapacity:
    def test_counts_each_host_and_all(self, full):
        body = capacity(full)
        found = body["capacity"]
        assert [(each["host"], each["count"]) for each in found["hosts"]] == [
            ("h1", 47),
            ("h2", 0),
            ("h3", 0),
        ]
        assert found["total"] == 47
        assert found["summary"] == (
            "47 more servers fit on 3 hosts (m1.tiny: 512 MB memory, 1 GB disk, 1 vcpus)."
        )
        memory = found["hosts"][0]["resources"][0]
        assert memory == {
            "resource": "memory",
            "unit": "MB",
            "need": 512,
            "total": 16384,
            "ratio": 1.5,
            "limit": 24576.0,
            "used": 512,
            "reserved": 512,
            "free": 15872,
            "usable": 24064.0,
            "one_server": 16384,
            "note": None,
            "count": 47,
        }
        assert [each["code"] for each in found["hosts"][2]["binds"]] == ["host_down"]

    def test_says_that_negative_is_no_error_and_what_binds(self, full):
        [host] = capacity(full, hosts=["H2"])["capacity"]["hosts"]
        assert host["more"] == [
            "free memory is -7916 MB, which is no error: 24300 MB are promised and there are "
            "16384 MB; ram_allocation_ratio 1.5 allows to promise 24576 MB, so 276 MB can still be "
            "taken"
        ]
        assert host["binds_text"].startswith("RamFilter: not enough memory: 512 MB requested, 276")

    def test_what_each_server_takes_beside_its_flavor_is_told(self, full):
        full.schedulers.states = [fakes.host_state("h1", guest_overhead_mb=100)]
        body = capacity(full)
        [host] = body["capacity"]["hosts"]
        memory = host["resources"][0]
        assert (host["count"], memory["used"], memory["usable"]) == (39, 512, 24064.0)
        note = "100 more for each server beside its flavor"
        assert memory["note"] == note
        text = "\n".join(line.text for line in rendered.capacity(body))
        assert f"  memory: {note}\n" in text

    def test_passes_on_what_is_asked(self, full):
        capacity(full, imageRef=BIG_IMAGE, availability_zone="z", volume_backed="yes", hosts=[])
        [(_method, spec, hosts)] = full.schedulers.asked
        assert (spec.image.id, spec.availability_zone, spec.volume_backed) == (BIG_IMAGE, "z", True)
        assert (hosts, spec.flavor.flavorid) == ([], FLAVOR)

    def test_without_limits_there_is_no_number(self, full, monkeypatch):
        made = fakes.pipeline(("ComputeFilter",))
        monkeypatch.setattr(fakes, "pipeline", lambda *_words: made)
        body = capacity(full, hosts=["h1"])
        assert body["capacity"]["total"] is None
        assert body["capacity"]["hosts"][0]["binds_text"] == "nothing limits it"
        text = "\n".join(line.text for line in rendered.capacity(body))
        assert "h1: any number more" in text

    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({"flavorRef": "77"}, "Flavor 77 could not be found."),
            ({"flavorRef": FLAVOR, "hosts": ["h1", "h9"]}, "Compute host h9 could not be found."),
            ({"flavorRef": FLAVOR, "imageRef": "x"}, "imageRef"),
            ({"flavorRef": FLAVOR, "availability_zone": "nova:h1"}, "availability_zone"),
            ({"flavorRef": FLAVOR, "flavor": 1}, "flavor"),
            ({}, "flavorRef"),
        ],
    )
    def test_what_is_wrong_is_named(self, full, fields, text):
        result = ask(full, **fields)
        assert result.status_code == 400
        assert text in result.json["badRequest"]["message"]

    def test_is_for_administrators(self, full):
        assert ask(full, MEMBER, flavorRef=FLAVOR).status_code == 403


def why_not(cloud, uuid, host=None, user=ADMIN):
    query = "" if host is None else f"?host={host}"
    result = cloud.call("GET", f"/servers/{uuid}/why-not{query}", user=user)
    assert result.status_code == 200, result.text
    return result.json


def text_of(body):
    return "\n".join(line.text for line in rendered.why_not(body))


class TestWhyNot:
    def test_a_host_that_refuses(self, full):
        body = why_not(full, full.boot(MEMBER, name="web"), "h2")
        found = body["why_not"]
        [host] = found["hosts"]
        assert found["summary"] == host["summary"]
        assert host["summary"].startswith("h2 does not take it: RamFilter: not enough memory: 512")
        [reason] = host["reasons"]
        assert (reason["need"], reason["have"], reason["reserved"]) == (512, 276.0, 512)
        assert host["changes"] == [
            {
                "text": "raise ram_allocation_ratio from 1.5 to 1.52, or free 236 MB",
                "option": "ram_allocation_ratio",
                "from": 1.5,
                "to": 1.52,
                "free": 236,
            }
        ]
        assert "free is -7916 MB, which is no error" in host["summary"]
        assert host["more"][0].startswith("If the request names it (availability_zone nova:h2)")
        assert found["decision"]["survivors"] == 1
        text = text_of(body)
        assert text.startswith(host["summary"])
        assert "What would change it:\n  - raise ram_allocation_ratio from 1.5 to 1.52" in text
        assert "Picture 1.1 of the host, 0.50 s old." in text

    def test_a_host_that_takes_it_is_weighed(self, full):
        uuid = full.boot(MEMBER, name="web")
        full.change(uuid, host="h1", node="h1")
        body = why_not(full, uuid, "h1")
        [host] = body["why_not"]["hosts"]
        assert host["summary"] == (
            "h1 takes it: every filter lets it in, and by its weight it is the only host."
        )
        assert (host["here"], host["rank"], host["changes"]) == (True, 1, [])
        assert host["more"] == [
            "The server is on this host already, and counted in what is used there."
        ]
        assert "RAMWeigher" in text_of(body)

    def test_a_negative_value_that_does_not_matter_is_told_too(self, full):
        full.schedulers.states = [fakes.host_state("h1", local_gb_used=300, vcpus_used=9)]
        [host] = why_not(full, full.boot(MEMBER), "h1")["why_not"]["hosts"]
        assert host["more"][0].startswith("Free vcpus are -1 vcpus, which is no error: 9 vcpus are")

    def test_all_hosts_each_once(self, full):
        body = why_not(full, full.boot(MEMBER, name="web"))
        found = body["why_not"]
        assert [each["host"] for each in found["hosts"]] == ["h1", "h2", "h3"]
        assert found["summary"] == (
            "Of 3 hosts 1 host would take it: 3 hosts: ComputeFilter 1, RamFilter 1, left 1."
        )
        rows = [line.split()[0] for line in text_of(body).splitlines() if line[:1] == "h"]
        assert rows == ["host", "h1", "h2", "h3"]

    def test_what_was_selected_and_is_in_no_picture_is_told(self, full):
        host = full.schedulers.states[0]
        host.consume("other", fakes.pipeline().demand(fakes.spec()).need)
        [found] = why_not(full, full.boot(MEMBER), "h1")["why_not"]["hosts"]
        assert found["selected"] == 1
        assert found["more"][0].startswith("1 server was chosen for it and counted")

    def test_a_named_host_skips_filters_but_is_told(self, full):
        uuid = full.boot(availability_zone="nova:h2")
        [host] = why_not(full, uuid, "h2")["why_not"]["hosts"]
        assert host["summary"] == (
            "h2 takes it, because the request names it: filters were skipped; RamFilter would "
            "refuse it."
        )

    def test_hosts_where_the_build_failed_are_known(self, full):
        from novalite.db import schema

        uuid = full.boot(MEMBER)
        actions = schema.instance_actions
        full.database.transaction(
            lambda conn: conn.execute(
                actions.update().where(actions.c.instance_uuid == uuid).values(failures=["h1"])
            )
        )
        [host] = why_not(full, uuid, "h1")["why_not"]["hosts"]
        assert [each["filter"] for each in host["reasons"]] == ["RetryFilter"]

    def test_other_members_of_the_group_are_known(self, full):
        body = {"server_group": {"name": "g", "policies": ["anti-affinity"]}}
        made = full.call("POST", "/os-server-groups", body, user=MEMBER)
        hints = {"group": made.json["server_group"]["id"]}
        first, second = (
            full.create(user=MEMBER, hints=hints).json["server"]["id"] for _number in range(2)
        )
        full.change(first, host="h1", node="h1")
        [host] = why_not(full, second, "h1")["why_not"]["hosts"]
        assert [each["code"] for each in host["reasons"]] == ["group_anti_affinity"]
        assert host["changes"][0]["option"] == "max_server_per_host of the group"

    def test_an_unknown_host_or_parameter_is_400(self, full):
        uuid = full.boot(MEMBER)
        for query in ("host=h9", "hosts=h1"):
            result = full.call("GET", f"/servers/{uuid}/why-not?{query}")
            assert result.status_code == 400, query

    def test_is_for_administrators(self, full):
        uuid = full.boot(MEMBER)
        path = f"/servers/{uuid}/why-not?host=h1"
        assert full.call("GET", path, user=MEMBER).status_code == 403
        assert full.call("GET", path, user=OTHER).status_code == 404

    def test_owners_who_may_ask_see_kinds_and_counts_only(self, full, monkeypatch):
        uuid = full.boot(MEMBER)
        allows = full.policy.allows

        def generous(context, rule, *owner):
            return rule == "servers:why-not" or allows(context, rule, *owner)

        monkeypatch.setattr(full.policy, "check", lambda *_words: None)
        monkeypatch.setattr(full.policy, "allows", generous)
        body = why_not(full, uuid, "h2", user=MEMBER)
        found = body["why_not"]
        assert found["hosts"] == [{"fits": False, "codes": ["not_enough_memory"]}]
        assert found["decision"]["filters"][1]["filter"]
        for word in ("h2", "24300", "16384", "276"):
            assert word not in str(body)
        assert text_of(body).endswith("Hosts and numbers are for administrators.")
