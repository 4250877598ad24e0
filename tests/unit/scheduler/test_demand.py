# SPDX-License-Identifier: Apache-2.0
"""What a demand holds, and when two requests have the same."""

from novalite.scheduler import demand
from tests.unit.scheduler import fakes


def test_users_servers_and_images_make_no_difference():
    one, two = fakes.spec("i1"), fakes.spec("i2")
    two.user_id, two.project_id, two.image.id = "else", "other", "another image"
    assert demand.of(one) == demand.of(two)
    assert hash(demand.of(one)) == hash(demand.of(two))


def test_what_a_filter_reads_makes_a_difference():
    one, two = fakes.spec(availability_zone="a"), fakes.spec(availability_zone="b")
    assert demand.of(one) != demand.of(two)
    one, two = fakes.spec(), fakes.spec()
    two.project_id = "other"
    assert demand.of(one, ["project_id"]) != demand.of(two, ["project_id"])


def test_lists_and_dicts_that_a_filter_declares_can_be_hashed():
    request = fakes.spec(scheduler_hints={"group": ["a", "b"], "x": {"y": 1}})
    asked = demand.of(request, ["scheduler_hints"])
    same = demand.of(
        fakes.spec(scheduler_hints={"x": {"y": 1}, "group": ["a", "b"]}), ["scheduler_hints"]
    )
    assert hash(asked) == hash(same)
    assert asked == same
    assert asked.scheduler_hints["group"] == ("a", "b")


def test_need_counts_swap_and_not_the_root_disk_of_a_volume():
    request = fakes.spec(root_gb=20)
    request.flavor.ephemeral_gb, request.flavor.swap_mb = 3, 1025
    assert demand.of(request).need == (512, 25, 1)
    request.volume_backed = True
    assert demand.of(request).need == (512, 5, 1)
