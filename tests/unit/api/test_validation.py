# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite import exception
from novalite.api import validation
from novalite.api.schemas import common, servers

NUMBER = validation.Schema(common.closed({"n": common.whole(1, 10)}))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("value", [1, 10, "1", "10", "007"])
def test_numbers_and_numbers_as_text(value: Any) -> None:
    NUMBER.check({"n": value})


@pytest.mark.parametrize(
    "value", [0, 11, "0", "11", "", "x", 1.5, True, None, "٣", "1 ", "1\n", "0\n", "9" * 99]
)
def test_the_message_names_field_and_value(value: Any) -> None:
    with pytest.raises(exception.ValidationError) as caught:
        NUMBER.check({"n": value})
    message = caught.value.message()
    assert message.startswith("Invalid input for field/attribute n. Value: ")
    assert (value if isinstance(value, str) else repr(value)) in message


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(exception.ValidationError) as caught:
        NUMBER.check({"nonsense": 1})
    assert "'nonsense' was unexpected" in caught.value.message()


def test_an_item_of_a_list_is_named_with_its_list() -> None:
    body = {"server": {"name": "x", "flavorRef": "1", "networks": "none", "tags": ["a", "a,b"]}}
    with pytest.raises(exception.ValidationError) as caught:
        servers.CREATE.at(52).check(body)
    assert "tags/1. Value: a,b." in caught.value.message()


@given(JSON)
def test_no_document_makes_a_long_message_or_a_crash(document: Any) -> None:
    try:
        servers.CREATE.at(53).check({"server": document})
    except exception.ValidationError as error:
        assert len(error.message()) < 1500


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(exception.ValidationError) as caught:
        NUMBER.check({"n": "x" * 10**6})
    assert len(caught.value.message()) < 1000


@pytest.mark.parametrize("word", ["true", "True", "ON", "1", "no", "f", True, False])
def test_yes_and_no(word: Any) -> None:
    validation.Schema(common.boolean()).check(word)


@pytest.mark.parametrize("word", ["maybe", "", "truey", 1, None])
def test_neither_yes_nor_no(word: Any) -> None:
    with pytest.raises(exception.ValidationError):
        validation.Schema(common.boolean()).check(word)


@pytest.mark.parametrize("name", ["key", "k:e.y-", "a b"])
def test_keys_of_metadata(name: str) -> None:
    validation.Schema(common.METADATA).check({name: "value"})


@pytest.mark.parametrize("name", ["", "key\n", "\nkey", "k\x00", "x" * 256, "é"])
def test_what_is_no_key_of_metadata(name: str) -> None:
    with pytest.raises(exception.ValidationError) as caught:
        validation.Schema(common.METADATA).check({"good": "value", name: "value"})
    message = caught.value.message()
    assert message.startswith("Invalid input received: ")
    assert message.endswith("does not match any of the regexes: '^[a-zA-Z0-9\\\\-_:. ]{1,255}$'")


def test_several_wrong_keys() -> None:
    with pytest.raises(exception.ValidationError) as caught:
        validation.Schema(common.METADATA).check({"b\n": "x", "a\n": "x"})
    assert "'a\\n', 'b\\n' do not match any of the regexes" in caught.value.message()


def test_values_of_metadata_are_looked_at() -> None:
    with pytest.raises(exception.ValidationError, match="attribute key. Value: 1. 1 is not of"):
        validation.Schema(common.METADATA).check({"key": 1})


@pytest.mark.parametrize("name", ["host", "a.b-c_d"])
def test_names_of_hosts(name: str) -> None:
    validation.Schema(common.HOST).check(name)


def test_a_line_break_is_no_end() -> None:
    with pytest.raises(exception.ValidationError, match="does not match"):
        validation.Schema(common.HOST).check("host\n")
    validation.Schema({"pattern": r"^\$[a-z]$"}).check("$x")
