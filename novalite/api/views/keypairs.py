# SPDX-License-Identifier: Apache-2.0
"""Key pairs as JSON."""

from typing import Any

from novalite.api import times
from novalite.objects.key_pair import KeyPair


def _summary(pair: KeyPair, version: int) -> dict[str, Any]:
    shown = {
        "name": pair.name,
        "public_key": pair.public_key,
        "fingerprint": pair.fingerprint,
    }
    if version >= 2:
        shown["type"] = pair.type
    return shown


def listed(pair: KeyPair, version: int) -> dict[str, Any]:
    """Return a key pair as in a list, where each one is wrapped again."""
    return {"keypair": _summary(pair, version)}


def created(pair: KeyPair, version: int, private_key: str | None) -> dict[str, Any]:
    """Return the answer to a create, the only one with the private key if one was made."""
    shown = _summary(pair, version) | {"user_id": pair.user_id}
    if private_key is not None:
        shown["private_key"] = private_key
    return shown


def detail(pair: KeyPair, version: int) -> dict[str, Any]:
    """Return the whole key pair; one that is shown was never changed and never deleted."""
    return _summary(pair, version) | {
        "id": pair.id,
        "user_id": pair.user_id,
        "created_at": times.micro(pair.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }
