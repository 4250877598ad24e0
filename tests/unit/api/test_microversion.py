# SPDX-License-Identifier: Apache-2.0
import pytest

from novalite import exception
from novalite.api import microversion


@pytest.mark.parametrize(
    ("header", "legacy", "minor"),
    [
        (None, None, 1),
        ("compute 2.53", None, 53),
        (None, "2.10", 10),
        ("compute 2.20", "2.10", 20),
        ("volume 3.59", "2.10", 10),
        ("volume 3.59, compute 2.7", None, 7),
        ("Compute 2.7", None, 7),
        ("compute latest", None, microversion.MAX),
        (None, "latest", microversion.MAX),
        ("", "", 1),
    ],
)
def test_the_two_headers(header: str | None, legacy: str | None, minor: int) -> None:
    assert microversion.requested(header, legacy) == minor


@pytest.mark.parametrize("version", ["2", "two", "2.01", "2.1.1", "-2.1", "2.", ".1", "2.1 x"])
def test_malformed_is_invalid(version: str) -> None:
    with pytest.raises(microversion.InvalidVersion):
        microversion.requested(f"compute {version}", None)


@pytest.mark.parametrize("version", ["2.0", f"2.{microversion.MAX + 1}", "3.1", "1.1", "2.99999"])
def test_out_of_range_names_the_range(version: str) -> None:
    with pytest.raises(microversion.VersionNotAcceptable) as caught:
        microversion.requested(None, version)
    assert f"Minimum is 2.1 and maximum is 2.{microversion.MAX}." in caught.value.message()


def test_ranges_take_the_latest_step() -> None:
    ranges = microversion.Ranges((1, "a"), (10, "b"), (53, "c"))
    assert [ranges.at(minor) for minor in (1, 9, 10, 52, 53)] == ["a", "a", "b", "b", "c"]


def test_ranges_do_not_exist_below_the_first_step() -> None:
    with pytest.raises(exception.VersionNotFound):
        microversion.Ranges((53, "c")).at(52)
