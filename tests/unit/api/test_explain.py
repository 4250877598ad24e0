# SPDX-License-Identifier: Apache-2.0
"""GET /servers/{id}/explain: who sees what, and that a tenant never sees a host."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novalite.advisor import render
from novalite.api.views import explain as view
from novalite.db import actions, builds
from novalite.objects import base, history, loss, states
from novalite.objects.action import Action, ActionEvent
from novalite.objects.decision import Decision, FilterCount, Miss, Weighed
from novalite.objects.facts import Facts
from novalite.objects.history import History
from novalite.objects.instance import InstanceFault
from novalite.objects.reason import WORDS, Reason
from novalite.objects.service import Service

MEMBER, OTHER, ADMIN = "alice:p1", "bob:p2", "admin:admin"
# What may not come out: in names, addresses and paths, and in the numbers of hosts.
WORD, NUMBER = "zq", 7_770_000


def explain(cloud, uuid, user=MEMBER):
    return cloud.get(f"/servers/{uuid}/explain", user=user)["explanation"]


class TestWho:
    def test_its_owner_and_administrators_see_it(self, cloud):
        uuid = cloud.boot(MEMBER)
        mine, all_ = explain(cloud, uuid), explain(cloud, uuid, ADMIN)
        assert (mine["host_details"], all_["host_details"]) == (False, True)
        assert "host" not in mine["server"] and "owner" not in mine["actions"][0]
        assert all_["server"]["host"] is None and "owner" in all_["actions"][0]

    def test_for_others_there_is_no_such_server(self, cloud):
        uuid = cloud.boot(MEMBER)
        assert cloud.call("GET", f"/servers/{uuid}/explain", user=OTHER).status_code == 404
        assert cloud.call("GET", "/servers/nonsense/explain", user=ADMIN).status_code == 404

    def test_a_deleted_server_too(self, cloud):
        uuid = cloud.boot(MEMBER, name="gone")
        assert cloud.call("DELETE", f"/servers/{uuid}", user=MEMBER).status_code == 204
        for user in (MEMBER, ADMIN):
            found = explain(cloud, uuid, user)
            assert found["summary"].startswith("gone was deleted ")
            assert found["summary"].endswith(" ago, while it was being built.")
            [delete, create] = found["actions"]
            assert (delete["action"], create["state"]) == ("delete", "superseded")
            assert "the server was deleted" in create["summary"]
        assert cloud.call("GET", f"/servers/{uuid}/explain", user=OTHER).status_code == 404

    def test_at_every_microversion(self, cloud):
        uuid = cloud.boot(MEMBER)
        for version in ("2.1", "2.53"):
            assert cloud.get(f"/servers/{uuid}/explain", version=version)["explanation"]


class TestPending:
    def test_while_nobody_takes_it(self, cloud):
        found = explain(cloud, cloud.boot(MEMBER, name="web"), ADMIN)
        assert found["summary"].startswith("web waits to be taken by a conductor, since ")
        assert "No conductor has ever reported." in found["more"]
        [create] = found["actions"]
        assert [row["what"] for row in create["timeline"]] == ["the request was accepted"]
        assert create["attempts"] == []

    def test_requests_for_several_servers_say_so(self, cloud):
        uuid = cloud.boot(MEMBER, min_count=3, max_count=3)
        assert explain(cloud, uuid)["actions"][0]["servers_in_request"] == 3

    def test_a_long_history_is_cut_but_keeps_the_create(self, cloud):
        uuid = cloud.boot(MEMBER)

        def more(conn):
            create = actions.list_for_instance(conn, uuid)[0]
            actions.close(conn, create.id, states.ActionState.DONE)
            for _ in range(30):
                actions.add(
                    conn,
                    builds.context_of(create),
                    instance_uuid=uuid,
                    action="reboot",
                    state=states.ActionState.DONE,
                    lease=0.0,
                )

        cloud.database.transaction(more)
        found = explain(cloud, uuid)
        assert found["older_actions"] is True
        names = [each["action"] for each in found["actions"]]
        assert names == ["reboot"] * 10 + ["create"]


# -- a tenant never sees a host

secret = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "host-", "10.7.7.", "/var/lib/"]),
    st.just(WORD),
    st.integers(0, 99),
)
secret_number = st.integers(NUMBER, NUMBER + 999).map(float)
# Whole ones, so that no other number looks like a host's.
moments = st.integers(1, 9).map(float)
codes = st.sampled_from([*WORDS, f"code_{WORD}", f"{WORD}.example.org"])
reasons = st.builds(
    Reason,
    codes,
    secret_number,
    secret_number,
    secret_number,
    secret_number,
    secret_number,
    secret_number,
    secret_number,
    st.none() | secret,
)
filters = st.builds(
    FilterCount,
    st.sampled_from(["RamFilter", "Mine", f"{WORD}.module:Filter"]),
    st.integers(5, 9),
    st.integers(0, 5),
    st.dictionaries(codes, st.integers(1, 4), max_size=3),
)
decisions = st.builds(
    Decision,
    hosts=st.integers(0, 9),
    survivors=st.integers(0, 9),
    host=st.none() | secret,
    node=st.none() | secret,
    filters=st.lists(filters, max_size=3),
    misses=st.lists(
        st.builds(Miss, secret, secret, st.lists(st.tuples(secret, reasons), max_size=2)),
        max_size=2,
    ),
    weighers=st.just([("RAMWeigher", 1.0)]),
    weights=st.lists(
        st.builds(
            Weighed,
            secret,
            secret,
            secret_number,
            st.lists(secret_number, min_size=1, max_size=1),
            st.lists(secret_number, min_size=1, max_size=1),
            secret,
            st.none() | st.lists(secret_number, min_size=1, max_size=1),
        ),
        max_size=2,
    ),
    room=st.lists(reasons, max_size=2),
    took=secret_number,
    picture_age=secret_number,
)
errors = st.builds(
    "{}{}".format,
    st.sampled_from(
        [
            "Hypervisor error: ",
            "Insufficient compute resources: ",
            "Binding failed ",
            "",
            "host CPU ",
        ]
    ),
    secret,
)
details = st.fixed_dictionaries(
    {},
    optional={
        "decision": decisions.map(base.encode),
        "host": secret,
        "node": secret,
        "error": errors,
        "text": secret,
        "code": st.sampled_from([*loss.WORDS, f"{WORD}-code"]),
        "memory": st.fixed_dictionaries(
            {name: secret_number for name in ("requested", "total", "used", "limit")}
        ),
    },
)
NAMES = (
    history.SCHEDULE,
    loss.WAIT,
    loss.EVENT,
    history.CLAIM,
    history.BUILD,
    "compute_spawn",
    history.DESTROY,
    f"compute_{WORD}",
)
events = st.builds(
    ActionEvent,
    st.sampled_from(NAMES),
    secret,
    moments,
    st.none() | moments,
    st.sampled_from([None, "Success", "Error"]),
    details,
    secret,
    st.integers(0, 3),
)
histories = st.builds(
    History,
    st.builds(
        Action,
        id=st.just(1),
        request_id=st.just("req-1"),
        instance_uuid=st.just("u"),
        action=st.sampled_from(["create", "delete", "forceDelete", "reboot"]),
        state=st.sampled_from(states.ActionState),
        step=st.sampled_from(states.Step),
        attempt=st.integers(0, 3),
        drives=st.integers(0, 9),
        failures=st.lists(secret, max_size=3),
        target_host=st.none() | secret,
        target_node=st.none() | secret,
        owner=st.none() | secret,
        args=st.fixed_dictionaries({"tried": st.lists(secret), "losses": st.lists(secret)}),
        message=st.none() | secret,
        start=st.just(1.0),
        finish=st.none() | moments,
    ),
    st.lists(events, max_size=6),
    st.integers(1, 3),
)
services = st.builds(
    Service,
    id=st.just(1),
    uuid=st.just("u"),
    host=secret,
    binary=st.sampled_from(["nova-compute", "nova-conductor"]),
    age=st.none() | moments,
    forced_down=st.booleans(),
)
NO_HOST = "No valid host was found. There are not enough hosts available. 1 host: RamFilter 1."
faults = st.builds(
    InstanceFault,
    code=st.just(500),
    message=st.just(NO_HOST)
    | st.just("Exceeded maximum number of retries. Exhausted all hosts.")
    | errors,
    details=secret,
    host=secret,
    created_at=st.just(1.0),
)
all_facts = st.builds(
    Facts,
    name=st.just("web"),
    vm_state=st.sampled_from([state.value for state in states.VMState]),
    now=st.just(10.0),
    down_time=st.just(60.0),
    task_state=st.sampled_from([None, "spawning", "deleting"]),
    host=st.none() | secret,
    node=st.none() | secret,
    deleted=st.booleans(),
    histories=st.lists(histories, max_size=2),
    fault=st.none() | faults,
    cleanups=st.lists(secret, max_size=2),
    services=st.lists(services, max_size=2),
)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)
@given(all_facts)
def test_a_tenant_sees_no_host_no_path_and_no_number_of_one(facts):
    body = view.show(facts, "u", admin=False, more=False)
    text = json.dumps(body) + "\n".join(line.text for line in render.lines(body))
    assert WORD not in text
    assert str(NUMBER)[:4] not in text


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)
@given(all_facts, st.booleans())
def test_there_is_always_an_answer(facts, admin):
    body = json.loads(json.dumps(view.show(facts, "u", admin=admin, more=False)))
    found = body["explanation"]
    assert found["summary"].startswith("web ") and found["summary"].endswith(".")
    assert not any(text.endswith(".") for text in found["advice"])
    first = next(iter(render.lines(body)))
    assert first.text == found["summary"]
    printed = "\n".join(line.text for line in render.lines(body))
    assert "None" not in printed.replace(WORD, "")
    assert "  ." not in printed and ".." not in printed.replace("...", "")


def test_a_decision_of_a_thousand_hosts(cloud):
    uuid = cloud.boot(MEMBER, name="big")
    need = Reason("not_enough_memory", 2048, 1536.0, 24576.0, 16384, 1.5, 23040, 512)
    made = Decision(
        hosts=1000,
        filters=[
            FilterCount("ComputeFilter", 1000, 997, {"host_disabled": 2, "host_down": 1}),
            FilterCount("RamFilter", 997, 0, {"not_enough_memory": 997}),
        ],
        misses=[Miss(f"h{i}", f"h{i}", [("RamFilter", need)]) for i in range(10)],
    ).bound()
    event = ActionEvent(history.SCHEDULE, "c", time.time(), time.time(), "Error", attempt=1)
    event.details = {"decision": base.encode(made)}
    fault = InstanceFault(500, f"No valid host was found. {made.reason_text()}", "", None, 1.0)

    def work(conn):
        [taken] = builds.take(conn, [cloud.row("instances", uuid=uuid).reservation_id], "c:1", 9.0)
        assert builds.fail_taken(conn, taken, fault, event)

    cloud.database.transaction(work)
    found = explain(cloud, uuid, ADMIN)
    assert found["summary"] == (
        "big is in ERROR: no host can take it: of 1000 hosts 2 are disabled, 1 is down "
        "and 997 have too little memory left."
    )
    assert found["advice"] == [
        "on h0, h1 and h2: raise ram_allocation_ratio from 1.5 to 1.54, or free 512 MB"
    ]
    assert found["fault"]["message"].endswith("1000 hosts: ComputeFilter 3, RamFilter 997.")
    mine = explain(cloud, uuid)
    assert mine["summary"] == found["summary"]
    assert mine["advice"][-1] == "ask for a smaller flavor, or try again when room is free"
    assert mine["actions"][0]["attempts"][0]["decision"]["filters"][1]["codes"] == {
        "not_enough_memory": 997
    }


@pytest.mark.parametrize("admin", [True, False])
def test_nine_losses_end_a_build_and_each_kind_is_told(admin):
    lost = [
        ActionEvent(loss.EVENT, "c", 2.0, 2.0, "Success", {"code": code, "text": text}, attempt=1)
        for code, text in [(loss.RECAST, "cast again to h1")] * 6 + [(loss.LEASE, "owner c")] * 3
    ]
    action = Action(1, "req-1", "u", "create", state=states.ActionState.ERROR, attempt=1, drives=9)
    facts = Facts(
        name="web",
        vm_state="error",
        now=10.0,
        down_time=60.0,
        histories=[History(action, lost)],
        fault=InstanceFault(500, "Build of instance u was given up after 9 losses on the way."),
    )
    found = view.show(facts, "u", admin=admin, more=False)["explanation"]
    assert "given up after 9 losses" in found["summary"]
    assert [text[:7] for text in found["more"]] == ["6 times", "3 times"]
    texts = {each["text"] for each in found["actions"][0]["attempts"][0]["losses"]}
    assert ("cast again to h1" in texts) is admin
