# SPDX-License-Identifier: Apache-2.0
"""A user's public key. It is stored and shown, never sent; no private key is ever stored."""

from dataclasses import dataclass

SSH = "ssh"
X509 = "x509"


@dataclass(slots=True)
class KeyPair:
    """One public key under a name that its user gave it.

    ``public_key`` is a line as in ``authorized_keys``, or a certificate as PEM for ``x509``.
    """

    user_id: str
    name: str
    type: str
    public_key: str
    fingerprint: str
    id: int | None = None
    created_at: float = 0.0
