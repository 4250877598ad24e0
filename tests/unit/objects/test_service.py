# SPDX-License-Identifier: Apache-2.0
"""When a service is up: by the age of its last report, on one clock."""

from typing import Any

import pytest

from novalite.objects.service import Service

LIMIT = 60.0


def service(**fields: Any) -> Service:
    return Service(id=1, uuid="u", host="h", binary="nova-compute", **fields)


@pytest.mark.parametrize(
    ("age", "up"),
    [
        (0.0, True),
        (60.0, True),
        (60.000001, False),
        # The database's clock was set back: as far off the other way is as much.
        (-60.0, True),
        (-60.000001, False),
        (None, False),
    ],
)
def test_up_is_an_age_of_exactly_the_limit_and_less(age: float | None, up: bool) -> None:
    assert service(age=age).is_up(LIMIT) is up


def test_what_was_forced_down_is_down() -> None:
    assert not service(age=0.0, forced_down=True).is_up(LIMIT)
