# SPDX-License-Identifier: Apache-2.0
"""Limits at every level, what is counted, and what a refusal says."""

import contextlib

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from novalite import exception
from novalite.db import deletes, quota_limits, quotas, schema
from novalite.objects.flavor import Flavor
from novalite.objects.states import VMState
from tests.unit.db import books as books_module

NOVA = {
    "instances": 10,
    "cores": 20,
    "ram": 51200,
    "metadata_items": 128,
    "injected_files": 5,
    "injected_file_content_bytes": 10240,
    "injected_file_path_bytes": 255,
    "key_pairs": 100,
    "server_groups": 10,
    "server_group_members": 10,
}
UNLIMITED = dict.fromkeys(NOVA, -1)


def boot(books, number, *, user="alice", project="p1", vcpus=1, memory_mb=64):
    """Store servers; return their uuids."""
    made = []
    for _ in range(number):
        server, spec = books_module.new_server()
        server.flavor = Flavor("2", "other", vcpus, memory_mb, 1)
        server.user_id, server.project_id = user, project
        books.create((server, spec))
        made.append(server.uuid)
    return made


def limit(books, resource, number, *, user="", project="p1"):
    books.write(quota_limits.set_limits, project, user, {resource: number})


def enforce(books, options, wanted, *, user="alice", project="p1", **values):
    books.write(quotas.enforce, options.__getitem__, project, user, wanted, **values)


def admit(books, options, *, least=1, most=1, vcpus=1, memory_mb=64, user="alice", **values):
    batch = quotas.Batch(vcpus, memory_mb, least, most, values.pop("metadata_items", 0))
    return books.write(quotas.admit, options.__getitem__, "p1", user, batch, **values)


@contextlib.contextmanager
def statements(books):
    """Collect the statements that are sent meanwhile."""
    found = []

    def listen(_conn, _cursor, statement, *_more):
        found.append(statement)

    event.listen(books.database._writer, "before_cursor_execute", listen)
    try:
        yield found
    finally:
        event.remove(books.database._writer, "before_cursor_execute", listen)


def test_limit_is_reached_but_not_passed(books):
    boot(books, 9)
    enforce(books, NOVA, {"instances": 1, "cores": 1, "ram": 64})
    with pytest.raises(exception.OverQuota):
        enforce(books, NOVA, {"instances": 2, "cores": 2, "ram": 128})


def test_refusal_of_one_resource_in_the_words_of_nova(books):
    boot(books, 1, vcpus=18)
    with pytest.raises(exception.OverQuota) as refused:
        admit(books, NOVA, vcpus=4)
    assert refused.value.message() == (
        "Quota exceeded for cores: Requested 4, but already used 18 of 20 cores"
    )


def test_refusal_of_two_resources_in_the_words_of_nova(books):
    boot(books, 9, vcpus=2)
    with pytest.raises(exception.OverQuota) as refused:
        enforce(books, NOVA, {"instances": 4, "cores": 4, "ram": 4})
    assert refused.value.message() == (
        "Quota exceeded for instances, cores: Requested 4, 4, but already used 9, 18 of 10, 20 "
        "instances, cores"
    )


def test_nothing_is_sent_for_what_is_unlimited_at_every_level(books):
    with statements(books) as found:
        assert admit(books, UNLIMITED, least=1, most=500, has_limits=False) == 500
    assert found == []


def test_three_statements_for_servers_with_limits(books):
    boot(books, 1)
    admit(books, NOVA)
    with statements(books) as found:
        admit(books, NOVA)
    words = [statement.split()[0] for statement in found]
    assert words == ["UPDATE", "SELECT", "SELECT"]
    assert "quota_locks" in found[0]


def test_lock_row_is_made_once_and_counts(books):
    for _ in range(3):
        admit(books, NOVA)
    rows = books.read(lambda conn: conn.execute(sa.select(schema.quota_locks)).all())
    assert rows == [("p1", 3)]


def test_unlimited_options_with_a_row_of_the_project(books):
    limit(books, "instances", 1)
    boot(books, 1)
    with pytest.raises(exception.OverQuota):
        enforce(books, UNLIMITED, {"instances": 1})
    with pytest.raises(exception.OverQuota):
        admit(books, UNLIMITED)


def test_unlimited_project_with_a_limited_user(books):
    """V29."""
    limit(books, "instances", -1)
    limit(books, "instances", 1, user="alice")
    assert admit(books, NOVA) == 1
    boot(books, 1)
    with pytest.raises(exception.OverQuota):
        admit(books, NOVA)
    assert admit(books, NOVA, most=15, user="bob") == 15


def test_users_limit_does_not_hide_that_of_the_project(books):
    limit(books, "instances", 2)
    limit(books, "instances", 50, user="alice")
    boot(books, 2, user="bob")
    with pytest.raises(exception.OverQuota) as refused:
        admit(books, NOVA)
    assert "already used 2 of 2 instances" in refused.value.message()


def test_users_own_servers_count_against_the_users_limit(books):
    limit(books, "cores", 3, user="alice")
    boot(books, 2, user="bob", vcpus=2)
    boot(books, 1, user="alice", vcpus=2)
    assert admit(books, NOVA, vcpus=1) == 1
    with pytest.raises(exception.OverQuota) as refused:
        admit(books, NOVA, vcpus=2)
    assert "already used 2 of 3 cores" in refused.value.message()


def test_class_default_stands_between_project_and_option(books):
    books.write(quota_limits.set_class_limits, "default", {"instances": 3, "cores": 4})
    books.write(quota_limits.set_class_limits, "gold", {"ram": 1})
    limit(books, "cores", 7)
    found = books.read(quota_limits.limits, NOVA.__getitem__, "p1", "alice")
    assert [found.effective(name) for name in ("instances", "cores", "ram")] == [3, 7, 51200]


@pytest.mark.parametrize(("least", "most", "fits"), [(1, 3, 2), (2, 9, 2), (1, 1, 1), (2, 2, 2)])
def test_as_many_as_fit(books, least, most, fits):
    """V28."""
    limit(books, "instances", 5)
    boot(books, 3)
    assert admit(books, NOVA, least=least, most=most) == fits


def test_not_even_the_least_fits(books):
    """V28."""
    limit(books, "instances", 5)
    boot(books, 3)
    with pytest.raises(exception.OverQuota) as refused:
        admit(books, NOVA, least=3, most=3)
    assert refused.value.message() == (
        "Quota exceeded for instances: Requested 3, but already used 3 of 5 instances"
    )
    with pytest.raises(exception.OverQuota, match="Requested 3-4, but already used 3 of 5"):
        admit(books, NOVA, least=3, most=4)


def test_the_scarcest_resource_decides_how_many_fit(books):
    assert admit(books, NOVA, most=10, vcpus=4, memory_mb=20000) == 2
    assert admit(books, NOVA, most=10, vcpus=7, memory_mb=1) == 2


def test_servers_in_error_count_and_deleted_ones_do_not(books):
    limit(books, "instances", 2)
    failed, other = boot(books, 2)
    t = schema.instances
    books.write(
        lambda conn: conn.execute(
            sa.update(t).where(t.c.uuid == failed).values(vm_state=VMState.ERROR.value)
        )
    )
    with pytest.raises(exception.OverQuota):
        admit(books, NOVA)
    books.delete(other)
    assert admit(books, NOVA, most=9) == 1
    with contextlib.suppress(exception.InstanceNotFound):
        books.write(deletes.open_delete, books_module.context(), other, lease=10.0)
    assert admit(books, NOVA, most=9) == 1


def test_other_projects_do_not_count(books):
    boot(books, 10, project="p2")
    assert admit(books, NOVA, most=10) == 10


def test_lowered_limit_below_use_leaves_no_room(books):
    boot(books, 3)
    limit(books, "instances", 1)
    with pytest.raises(exception.OverQuota, match="already used 3 of 1 instances"):
        admit(books, NOVA)


def test_a_limit_that_is_passed_already_does_not_hinder_what_needs_none_of_it(books):
    boot(books, 3)
    limit(books, "instances", 1)
    enforce(books, NOVA, {"instances": 0, "cores": 4})


def test_metadata_items(books):
    assert admit(books, NOVA, metadata_items=128) == 1
    with pytest.raises(exception.MetadataLimitExceeded) as refused:
        admit(books, NOVA, metadata_items=129)
    assert refused.value.message() == "Maximum number of metadata items exceeds 128"
    with pytest.raises(exception.MetadataLimitExceeded):
        admit(books, UNLIMITED | {"metadata_items": 3}, metadata_items=4, has_limits=False)
    limit(books, "metadata_items", -1)
    assert admit(books, NOVA, metadata_items=500) == 1


def add_key_pairs(books, user, number):
    row = {"user_id": user, "type": "ssh", "public_key": "", "fingerprint": "", "created_at": 1.0}
    rows = [{**row, "name": f"k{index}"} for index in range(number)]
    books.write(lambda conn: conn.execute(sa.insert(schema.key_pairs), rows))


def test_key_pairs_are_counted_by_user(books):
    add_key_pairs(books, "alice", 2)
    options = NOVA | {"key_pairs": 2}
    enforce(books, options, {"key_pairs": 1}, user="bob")
    with pytest.raises(exception.KeypairLimitExceeded) as refused:
        enforce(books, options, {"key_pairs": 1}, project="p2")
    assert refused.value.message() == "Quota exceeded, too many key pairs."


def add_groups(books, *owners):
    row = {"project_id": "p1", "name": "g", "policy": "affinity", "rules": {}, "created_at": 1.0}
    rows = [{**row, "uuid": f"g{index}", "user_id": user} for index, user in enumerate(owners)]
    books.write(lambda conn: conn.execute(sa.insert(schema.server_groups), rows))


def test_server_groups_of_project_and_user(books):
    add_groups(books, "alice", "bob", "bob")
    enforce(books, NOVA | {"server_groups": 4}, {"server_groups": 1})
    with pytest.raises(exception.ServerGroupLimitExceeded):
        enforce(books, NOVA | {"server_groups": 3}, {"server_groups": 1})
    limit(books, "server_groups", 1, user="alice")
    with pytest.raises(exception.ServerGroupLimitExceeded):
        enforce(books, NOVA, {"server_groups": 1})
    enforce(books, NOVA, {"server_groups": 1}, user="bob")


def test_members_of_one_group(books):
    servers = boot(books, 3)
    rows = [{"instance_uuid": uuid, "group_uuid": "g0"} for uuid in servers]
    books.write(lambda conn: conn.execute(sa.insert(schema.server_group_members), rows))
    options = NOVA | {"server_group_members": 3}
    enforce(books, options, {"server_group_members": 3}, group_uuid="g1")
    with pytest.raises(exception.ServerGroupMemberLimitExceeded):
        enforce(books, options, {"server_group_members": 1}, group_uuid="g0")
    books.delete(servers[0])
    enforce(books, options, {"server_group_members": 1}, group_uuid="g0")


def test_limits_are_set_changed_and_taken_back(books):
    limit(books, "cores", 5)
    limit(books, "cores", 6)
    limit(books, "cores", 2, user="alice")
    limit(books, "ram", 9, project="p2")
    found = books.read(quota_limits.limits, NOVA.__getitem__, "p1", "alice")
    assert found.of("cores") == (6, 2)
    books.write(quota_limits.delete_limits, "p1", "alice")
    assert books.read(quota_limits.limits, NOVA.__getitem__, "p1", "alice").of("cores") == (6, -1)
    limit(books, "cores", 2, user="alice")
    books.write(quota_limits.delete_limits, "p1")
    assert books.read(quota_limits.limits, NOVA.__getitem__, "p1", "alice").of("cores") == (20, -1)
    assert books.read(quota_limits.limits, NOVA.__getitem__, "p2").of("ram") == (9, -1)


def test_usages(books):
    boot(books, 2, vcpus=2, memory_mb=100)
    boot(books, 1, user="bob")
    add_groups(books, "bob")
    found = books.read(quotas.usages, "p1", "bob")
    assert {name: (usage.project, usage.user) for name, usage in found.items()} == {
        "instances": (3, 1),
        "cores": (5, 1),
        "ram": (264, 64),
        "server_groups": (1, 1),
    }


def test_sums_of_the_limits_of_users(books):
    limit(books, "cores", 5, user="alice")
    limit(books, "cores", 3, user="bob")
    limit(books, "ram", -1, user="bob")
    limit(books, "cores", 100)
    assert books.read(quota_limits.user_sums, "p1") == {"cores": 8}
    assert books.read(quota_limits.user_sums, "p1", "bob") == {"cores": 5}
