# SPDX-License-Identifier: Apache-2.0
"""Fields of a travelling class do not change without a new version.

object_fingerprints.json is the record. After a change with a new VERSION, write it anew:
``python -m tests.unit.test_object_versions``
"""

import importlib
import json
import pkgutil
from pathlib import Path

import pytest

from novalite import objects
from novalite.objects import base

RECORD = Path(__file__).with_name("object_fingerprints.json")

for module in pkgutil.iter_modules(objects.__path__):
    importlib.import_module(f"novalite.objects.{module.name}")


def fingerprints() -> dict[str, str]:
    # Tests of the codec may have registered classes of their own.
    return {
        name: base.fingerprint(cls)
        for name, cls in sorted(base.registered().items())
        if cls.__module__.startswith("novalite.objects.")
    }


FOUND = fingerprints()


@pytest.mark.parametrize("name", FOUND)
def test_fields_are_those_of_the_version(name: str) -> None:
    recorded = json.loads(RECORD.read_text()).get(name)
    assert FOUND[name] == recorded, (
        f"{name} changed: a field with a default needs a new minor VERSION, anything else a new "
        "major one; then python -m tests.unit.test_object_versions"
    )


def test_no_class_went_away() -> None:
    assert set(json.loads(RECORD.read_text())) == set(FOUND)


if __name__ == "__main__":
    RECORD.write_text(json.dumps(FOUND, indent=1) + "\n")
