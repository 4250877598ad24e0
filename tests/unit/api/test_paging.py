# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite import exception
from novalite.api import paging, times


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0", 0), ("1", 1), ("1000", 1000), ("1001", 1000), ("9" * 31, 1000), ("0000000000007", 7)],
)
def test_limit_v25(conf: Any, text: str, limit: int) -> None:
    assert paging.page(conf, {"limit": [text]}).limit == limit


@pytest.mark.parametrize("text", ["-1", "abc", "", "1.5", "+1", "٣", " 1"])
def test_limit_that_is_no_number_v25(conf: Any, text: str) -> None:
    with pytest.raises(exception.ValidationError):
        paging.page(conf, {"limit": [text]})


def test_no_limit_is_the_largest(conf: Any) -> None:
    conf.set_override("max_limit", 7, group="api")
    assert paging.page(conf, {}) == paging.Page(7, None)


@given(st.text(max_size=300))
def test_a_wrong_value_is_shown_in_part(text: str) -> None:
    assert len(paging.refuse("name", text, "is wrong").message()) < 400


def test_sorting_repeats_the_first_direction() -> None:
    query = {"sort_key": ["a", "b", "c"], "sort_dir": ["asc"]}
    assert paging.sorting(query, {"a": 1, "b": 1, "c": 1}, []) == [
        ("a", "asc"),
        ("b", "asc"),
        ("c", "asc"),
    ]


@pytest.mark.parametrize(
    "query",
    [
        {"sort_key": ["nope"]},
        {"sort_key": ["a"], "sort_dir": ["up"]},
        {"sort_key": ["a"], "sort_dir": ["asc", "asc"]},
    ],
)
def test_sorting_refuses(query: dict[str, list[str]]) -> None:
    with pytest.raises(exception.Invalid):
        paging.sorting(query, {"a": 1}, [])


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("2026-01-01T02:00:00+02:00", 1767225600.0),
        ("2026-01-01T02:00:00 02:00", 1767225600.0),
        ("2026-01-01T00:00:00", 1767225600.0),
        ("2026-01-01T00:00:00.500000", 1767225600.5),
    ],
)
def test_times_are_read_v27(text: str, moment: float) -> None:
    assert times.parse("changes-since", text) == moment


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "12:00", "1"])
def test_times_that_are_none_v27(text: str) -> None:
    with pytest.raises(exception.ValidationError):
        times.parse("changes-since", text)


@given(st.floats(min_value=0, max_value=4e9))
def test_times_are_written_without_rounding_up(moment: float) -> None:
    assert times.parse("x", times.zulu(moment) or "") == int(moment)
    assert abs(times.parse("x", times.micro(moment) or "") - moment) < 1e-5
    assert "Z" not in (times.micro(moment) or "")
