# SPDX-License-Identifier: Apache-2.0
"""The demo prints the explanation that ``novalite explain`` prints."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from novalite.advisor import cloud
from novalite.cmd import demo, explain
from novalite.devcloud.errors import DevCloudError
from tests.unit.advisor.test_render import TEXT, body


def test_the_explanation_of_the_server_is_shown(monkeypatch, tmp_path):
    asked = []

    def compute(directory, name):
        asked.append((directory, name))
        return SimpleNamespace(explain=lambda uuid: asked.append(uuid) or body())

    monkeypatch.setattr(explain, "compute", compute)
    output = io.StringIO()
    demo._explain(SimpleNamespace(directory=tmp_path), "uuid", Console(file=output, width=20))
    assert output.getvalue() == f"\n$ novalite explain demo\n{TEXT}"
    assert asked == [(tmp_path, None), "uuid"]


def test_trouble_ends_the_demo_with_its_words(monkeypatch, tmp_path):
    def compute(_directory, _name):
        raise cloud.CloudError("there is no cloud")

    monkeypatch.setattr(explain, "compute", compute)
    with pytest.raises(DevCloudError, match="there is no cloud"):
        demo._explain(SimpleNamespace(directory=tmp_path), "uuid", Console(file=io.StringIO()))
