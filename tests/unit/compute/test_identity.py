# SPDX-License-Identifier: Apache-2.0
"""The node identity in the state directory."""

import stat
import uuid

import pytest

from novalite import exception
from novalite.compute import identity


def test_it_is_made_once_and_read_again(tmp_path):
    first = identity.Identity(str(tmp_path / "new" / "state"))
    assert str(uuid.UUID(first.value)) == first.value
    first.release()
    second = identity.Identity(str(tmp_path / "new" / "state"))
    assert second.value == first.value
    second.release()


def test_nobody_else_may_write_it(tmp_path):
    identity.Identity(str(tmp_path)).release()
    assert stat.S_IMODE((tmp_path / identity.FILE).stat().st_mode) == 0o600


def test_two_processes_cannot_have_one_state_directory(tmp_path):
    first = identity.Identity(str(tmp_path))
    with pytest.raises(exception.ConfigurationError, match="each needs a state_path of its own"):
        identity.Identity(str(tmp_path))
    first.release()
    identity.Identity(str(tmp_path)).release()


def test_what_is_no_identity_is_refused_and_left_alone(tmp_path):
    (tmp_path / identity.FILE).write_text("node1\n")
    with pytest.raises(exception.ConfigurationError, match="does not hold a node identity"):
        identity.Identity(str(tmp_path))
    assert (tmp_path / identity.FILE).read_text() == "node1\n"


def test_a_directory_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(exception.ConfigurationError, match="state_path: .* cannot be opened"):
        identity.Identity(str(tmp_path / "file"))
