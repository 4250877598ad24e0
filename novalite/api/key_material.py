# SPDX-License-Identifier: Apache-2.0
"""Checks public keys, takes their fingerprints, and makes new keys.

Called by the resource of key pairs. A private key goes into the answer to the request that made it
and nowhere else: it must never be stored or logged.
"""

import base64
import binascii
import datetime
import hashlib
from dataclasses import dataclass

from cryptography import exceptions, x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import oid

from novalite import exception
from novalite.objects import key_pair

MAX_BITS = 16384
_NEW_BITS = 2048
# Where Windows looks for the account of a certificate: the user principal name.
_UPN = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
_UTF8_STRING = 0x0C
# The longest common name that a certificate may have, in bytes.
_MAX_COMMON_NAME = 64
_VALID_FOR = datetime.timedelta(days=3650)

# What a line of an RSA, Ed25519 or ECDSA key begins with, the last two also on a token.
_KINDS = ("ssh-rsa", "ssh-ed25519", "ecdsa-sha2-", "sk-ssh-ed25519", "sk-ecdsa-sha2-")


@dataclass(frozen=True, slots=True)
class Made:
    """A new key; ``private_key`` is PEM, ``public_key`` what a key pair of its type stores."""

    public_key: str
    private_key: str
    fingerprint: str


def fingerprint(kind: str, public_key: str) -> str:
    """Return the fingerprint of a public key: MD5 for ssh, SHA-1 for x509, as Nova shows them.

    :raises exception.InvalidKeypair: it is no such key, or one of more than MAX_BITS bits
    """
    return _x509_fingerprint(public_key) if kind == key_pair.X509 else _ssh_fingerprint(public_key)


def _ssh_fingerprint(public_key: str) -> str:
    line = public_key.strip()
    if not line.startswith(_KINDS):
        raise exception.InvalidKeypair(reason="only RSA, ECDSA and Ed25519 keys are supported")
    try:
        key = serialization.load_ssh_public_key(line.encode())
        blob = base64.b64decode(line.split()[1], validate=True)
    except (ValueError, IndexError, binascii.Error, exceptions.UnsupportedAlgorithm) as error:
        raise exception.InvalidKeypair(reason="failed to generate fingerprint") from error
    if len(line.splitlines()) > 1:
        raise exception.InvalidKeypair(reason="a public key is one line")
    _check_size(key)
    return _colons(hashlib.md5(blob, usedforsecurity=False).digest())


def _x509_fingerprint(public_key: str) -> str:
    try:
        certificate = x509.load_pem_x509_certificate(public_key.encode())
        key = certificate.public_key()
    except (ValueError, exceptions.UnsupportedAlgorithm) as error:
        raise exception.InvalidKeypair(reason="failed to generate X509 fingerprint") from error
    _check_size(key)
    return _colons(certificate.fingerprint(hashes.SHA1()))


def _check_size(key: object) -> None:
    bits = getattr(key, "key_size", 0)
    if bits > MAX_BITS:
        raise exception.InvalidKeypair(
            reason=f"a key of {bits} bits is too large, {MAX_BITS} are the most"
        )


def _colons(digest: bytes) -> str:
    return digest.hex(":")


def make(kind: str, user_id: str) -> Made:
    """Make a new RSA key of 2048 bits, for x509 with a self-signed certificate of the user."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_NEW_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    if kind == key_pair.X509:
        public = _certificate(key, user_id)
    else:
        encoded = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        public = f"{encoded.decode()} Generated-by-Nova"
    return Made(public, private, fingerprint(kind, public))


def _certificate(key: rsa.RSAPrivateKey, user_id: str) -> str:
    """Return a certificate with which WinRM lets the user in."""
    user = user_id.encode()[:_MAX_COMMON_NAME].decode("utf-8", "ignore") or "nobody"
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, user)])
    moment = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - datetime.timedelta(days=1))
        .not_valid_after(moment + _VALID_FOR)
        .add_extension(x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.OtherName(_UPN, _utf8_string(f"{user}@localhost"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _utf8_string(text: str) -> bytes:
    """Return a DER UTF8String."""
    raw = text.encode()
    # One byte holds the length up to 127, and no name here is longer.
    return bytes([_UTF8_STRING, len(raw)]) + raw
