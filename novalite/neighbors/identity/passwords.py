# SPDX-License-Identifier: Apache-2.0
"""Salted password hashes of the identity stand-in; used when a password is set or presented."""

import hashlib
import hmac
import secrets

# A log-in costs some milliseconds: enough for a development cloud, little enough for test suites
# that make thousands of accounts. Tokens are validated without any of this.
_COST = 2048
_BLOCK = 8


def hashed(password: str) -> str:
    """Return ``scrypt$COST$SALT$DIGEST`` for a new random salt."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_COST}${salt.hex()}${_digest(password, salt, _COST).hex()}"


def matches(password: str, stored: str) -> bool:
    """Tell whether *password* is the one that was hashed."""
    _scheme, cost, salt, digest = stored.split("$")
    found = _digest(password, bytes.fromhex(salt), int(cost))
    return hmac.compare_digest(found, bytes.fromhex(digest))


def pretend(password: str) -> None:
    """Take as long as :func:`matches`, for a user who is not there: names cannot be tried out."""
    _digest(password, secrets.token_bytes(16), _COST)


def _digest(password: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=cost, r=_BLOCK, p=1, dklen=32)
