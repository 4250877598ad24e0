# SPDX-License-Identifier: Apache-2.0
"""The codec: what goes out comes back, whole or without what is default."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import base
from novalite.objects.states import PowerState


@base.register
@dataclass(slots=True)
class Sample:
    """One field of each kind that objects have."""

    VERSION: ClassVar[str] = "1.2"

    name: str
    count: int = 0
    ratio: float = 1.0
    flag: bool = False
    state: PowerState = PowerState.NOSTATE
    near: str | None = None
    pairs: list[Any] = field(default_factory=list)
    inner: dict[str, Any] = field(default_factory=dict)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
SAMPLES = st.builds(
    Sample,
    name=st.text(),
    count=st.integers(-1, 1),
    ratio=st.sampled_from([0.0, 1.0, 2.5]),
    flag=st.booleans(),
    state=st.sampled_from(PowerState),
    near=st.none() | st.text(max_size=1),
    pairs=st.lists(SCALARS | st.lists(SCALARS), max_size=3),
    inner=st.dictionaries(st.text(), SCALARS, max_size=2),
)
ENVELOPE = {"novalite_object": "Sample", "version": "1.2"}


@pytest.mark.parametrize("write", [base.encode, base.pack])
@given(sample=SAMPLES)
def test_comes_back(write: Any, sample: Sample) -> None:
    """Through JSON, in a list of others, nothing is lost."""
    wire = json.loads(json.dumps(write([sample, {"key": sample}])))
    assert base.decode(wire) == [sample, {"key": sample}]


@pytest.mark.parametrize("write", [base.encode, base.pack])
@pytest.mark.parametrize("name", ["Sample", "Nothing", "", None, 1])
def test_keys_of_users_make_no_objects(write: Any, name: Any) -> None:
    """A dict comes back as the dict that it was, whatever its keys and values are."""
    users = {"novalite_object": name, "version": "1.2", "name": "x"}
    sample = Sample("a", inner={"metadata": users, "items": {"novalite_object": users}})
    wire = json.loads(json.dumps(write([sample, users])))
    assert base.decode(wire) == [sample, users]


def test_encode_writes_every_field() -> None:
    """What others than decode() read is whole."""
    assert set(base.encode(Sample("a"))) == {*ENVELOPE, *Sample.__slots__}


def test_pack_leaves_out_defaults() -> None:
    """What must be said is said even if it is empty."""
    assert base.pack(Sample("")) == {**ENVELOPE, "name": ""}
    assert base.pack(Sample("a", inner={"b": Sample("c", 1)})) == {
        **ENVELOPE,
        "name": "a",
        "inner": {"b": {**ENVELOPE, "name": "c", "count": 1}},
    }


def test_pack_keeps_types_apart() -> None:
    """0, 0.0 and False are equal, but only one of them is the default."""
    odd: Any = Sample("a", count=False, ratio=1, flag=0)  # type: ignore[arg-type]
    assert base.pack(odd) == {**ENVELOPE, "name": "a", "count": False, "ratio": 1, "flag": 0}


def test_other_versions() -> None:
    """A newer minor version brings unknown fields; another major version is refused."""
    assert base.decode({**ENVELOPE, "version": "1.9", "name": "a", "new": 1}) == Sample("a")
    with pytest.raises(base.IncompatibleObject):
        base.decode({**ENVELOPE, "version": "2.0", "name": "a"})
