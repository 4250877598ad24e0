# SPDX-License-Identifier: Apache-2.0
"""Differences of power states are told once, and nothing is ever changed."""

import pytest

from novalite import context
from novalite.compute.power_sync import PowerSync
from novalite.objects.states import PowerState
from tests.unit.compute.doubles import Driver


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def told():
    return []


@pytest.fixture
def power(driver, told):
    return PowerSync(driver, lambda context, item: told.append(item))


def sync(power, told):
    told.clear()
    power.sync(context.service_context())
    return [(item.instance_uuid, item.node, item.power_state) for item in told]


def test_nothing_is_told_while_nothing_differs(power, driver, told):
    driver.add("a")
    power.note("a", "node1", PowerState.RUNNING)
    assert sync(power, told) == []


def test_a_difference_is_told_once(power, driver, told):
    driver.add("a")
    power.note("a", "node1", PowerState.RUNNING)
    driver.guests["a"].power_state = PowerState.SHUTDOWN
    assert sync(power, told) == [("a", "node1", PowerState.SHUTDOWN)]
    assert sync(power, told) == []
    driver.guests["a"].power_state = PowerState.RUNNING
    assert sync(power, told) == [("a", "node1", PowerState.RUNNING)]


def test_a_missing_guest_is_warned_of_and_nothing_is_destroyed(power, driver, told, caplog):
    power.note("a", "node1", PowerState.RUNNING)
    driver.add("b")
    power.note("b", "node1", PowerState.RUNNING)
    assert sync(power, told) == [("a", "node1", PowerState.NOSTATE)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert driver.destroyed == [] and "b" in driver.guests


def test_guests_that_are_no_servers_yet_are_not_told(power, driver, told):
    driver.add("building", running=False)
    assert sync(power, told) == []


def test_who_has_left_is_forgotten(power, driver, told):
    power.note("a", "node1", PowerState.RUNNING)
    power.forget("a")
    power.forget("a")
    assert sync(power, told) == []


def test_who_leaves_during_the_look_is_not_told(power, driver, told):
    power.note("a", "node1", PowerState.RUNNING)

    def list_guests():
        power.forget("a")
        return []

    driver.list_guests = list_guests
    assert sync(power, told) == []
