# SPDX-License-Identifier: Apache-2.0
import pytest

from novalite import exception
from novalite.api import zones


@pytest.mark.parametrize(
    ("text", "zone", "host", "node"),
    [
        ("nova", "nova", None, None),
        ("nova:h1", "nova", "h1", None),
        ("nova:h1:n1", "nova", "h1", "n1"),
        ("nova::n1", "nova", None, "n1"),
        (":h1", "default", "h1", None),
        ("::n1", "default", None, "n1"),
        (None, "default", None, None),
    ],
)
def test_forms_v09(text: str | None, zone: str, host: str | None, node: str | None) -> None:
    assert zones.parse(text, "default") == zones.Wanted(zone, host, node)


@pytest.mark.parametrize("text", ["nova:", "nova:h1:", "::", ":", "nova:h1:n1:x", "", " nova"])
def test_refused_v09(text: str) -> None:
    with pytest.raises(exception.InvalidInput) as caught:
        zones.parse(text, None)
    assert "availability_zone" in caught.value.message()
