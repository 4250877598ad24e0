# SPDX-License-Identifier: Apache-2.0
"""Key pairs: what is taken, what is shown at which microversion, and who may see it."""

import base64
import struct
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from novalite.api import key_material
from tests.unit.api.cloud import Cloud

# Made once with ssh-keygen, which also said what its MD5 fingerprint is.
ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN1uKmuHJochoaji53iDlBgUKicsU6Ee9sY3cUCZKyXl joe@box"
BASE = {"name", "public_key", "fingerprint"}


def openssh(key: Any) -> str:
    encoded = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return str(encoded.decode())


def rsa_line(bits: int) -> str:
    """Return the line of an RSA key of so many bits; nobody has the private half."""

    def field(data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + data

    modulus = (1 << (bits - 1)) | 1
    number = modulus.to_bytes(bits // 8 + 1, "big")
    blob = field(b"ssh-rsa") + field(b"\x01\x00\x01") + field(number)
    return f"ssh-rsa {base64.b64encode(blob).decode()}"


def make(cloud: Cloud, version: str = "2.10", user: str = "joe:p", **values: Any) -> Any:
    body = {"keypair": {"name": "mine", "public_key": ED25519, **values}}
    return cloud.call("POST", "/os-keypairs", body, version=version, user=user)


def generate(cloud: Cloud, version: str = "2.2", user: str = "joe:p", **values: Any) -> Any:
    body = {"keypair": {"name": "made", **values}}
    result = cloud.call("POST", "/os-keypairs", body, version=version, user=user)
    assert result.status_code in (200, 201), result.text
    return result.json["keypair"]


def names(cloud: Cloud, query: str = "", user: str = "joe:p", version: str = "2.35") -> list[str]:
    found = cloud.get(f"/os-keypairs{query}", user=user, version=version)["keypairs"]
    return [item["keypair"]["name"] for item in found]


@pytest.mark.parametrize(
    ("version", "status", "more"), [("2.1", 200, set()), ("2.2", 201, {"type"})]
)
def test_create(cloud: Cloud, version: str, status: int, more: set[str]) -> None:
    result = make(cloud, version)
    assert result.status_code == status
    pair = result.json["keypair"]
    assert set(pair) == BASE | more | {"user_id"}
    assert (pair["name"], pair["public_key"], pair["user_id"]) == ("mine", ED25519, "joe")
    assert pair["fingerprint"] == "d3:f3:71:29:de:36:c4:6c:94:99:d6:ae:ea:ff:6f:9f"


@pytest.mark.parametrize(("version", "more"), [("2.1", set()), ("2.2", {"type"})])
def test_show_and_list(cloud: Cloud, version: str, more: set[str]) -> None:
    make(cloud)
    shown = cloud.get("/os-keypairs/mine", user="joe:p", version=version)["keypair"]
    times = {"created_at", "updated_at", "deleted", "deleted_at"}
    assert set(shown) == BASE | more | {"id", "user_id"} | times
    assert (shown["deleted"], shown["deleted_at"], shown["updated_at"]) == (False, None, None)
    assert len(shown["created_at"]) == len("2026-01-31T12:00:00.000000")
    assert isinstance(shown["id"], int)
    (item,) = cloud.get("/os-keypairs", user="joe:p", version=version)["keypairs"]
    assert set(item) == {"keypair"}
    assert set(item["keypair"]) == BASE | more


def test_a_made_key_fits_its_private_half(cloud: Cloud) -> None:
    pair = generate(cloud)
    private = serialization.load_pem_private_key(pair["private_key"].encode(), None)
    public = private.public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    assert public.key_size == 2048
    assert pair["public_key"].startswith(openssh(public))
    assert key_material.fingerprint("ssh", pair["public_key"]) == pair["fingerprint"]
    assert "private_key" not in cloud.get("/os-keypairs/made", user="joe:p")["keypair"]


def test_a_made_certificate(cloud: Cloud) -> None:
    pair = generate(cloud, type="x509")
    assert pair["type"] == "x509"
    certificate = x509.load_pem_x509_certificate(pair["public_key"].encode())
    assert certificate.subject.rfc4514_string() == "CN=joe"
    names_ = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    (upn,) = names_.get_values_for_type(x509.OtherName)
    assert upn.value == b"\x0c\x0djoe@localhost"
    assert pair["fingerprint"] == certificate.fingerprint(hashes.SHA1()).hex(":")
    # The public half is what one may bring, too.
    again = make(cloud, name="again", type="x509", public_key=pair["public_key"])
    assert again.json["keypair"]["fingerprint"] == pair["fingerprint"]


def test_long_and_foreign_users_have_certificates() -> None:
    for user in ("x" * 255, "ö" * 255):
        made = key_material.make("x509", user)
        certificate = x509.load_pem_x509_certificate(made.public_key.encode())
        names_ = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (upn,) = names_.get_values_for_type(x509.OtherName)
        text = user.encode()[:64] + b"@localhost"
        assert upn.value == b"\x0c" + bytes([len(text)]) + text


TAKEN = [
    ED25519 + "\n",
    ED25519.rpartition(" ")[0],
    openssh(ec.generate_private_key(ec.SECP256R1()).public_key()),
    openssh(ec.generate_private_key(ec.SECP521R1()).public_key()),
    openssh(ed25519.Ed25519PrivateKey.generate().public_key()),
    rsa_line(2048),
    rsa_line(16384),
]


def test_keys_that_are_taken(cloud: Cloud) -> None:
    for number, line in enumerate(TAKEN):
        result = make(cloud, name=f"key {number}", public_key=line)
        assert result.status_code == 201, (line, result.text)
        assert result.json["keypair"]["public_key"] == line


REFUSED: list[Any] = [
    "",
    " ",
    "ssh-rsa JUNK nova@ubuntu",
    "ssh-rsa " + "A" * 4096 + " openstack@ubuntu",
    rsa_line(16392),
    ED25519 + "\n" + ED25519,
    ED25519 + " \0",
    ED25519.replace("ed25519", "rsa"),
    "ö" + ED25519,
    "ssh-rsa " + "A" * 20000,
    ED25519.replace("ssh-ed25519", "ssh-dss"),
    7,
    None,
]


def test_keys_that_are_refused(cloud: Cloud) -> None:
    for line in REFUSED:
        result = make(cloud, public_key=line)
        assert result.status_code == 400, (line, result.text)
    assert names(cloud) == []


def test_a_line_is_no_certificate(cloud: Cloud) -> None:
    result = make(cloud, type="x509")
    assert result.status_code == 400
    assert "failed to generate X509 fingerprint" in result.json["badRequest"]["message"]


GOOD_NAMES = ["a", "a-b_c 7", "x" * 255]


def test_names_that_are_taken(cloud: Cloud) -> None:
    for name in GOOD_NAMES:
        assert make(cloud, name=name).status_code == 201, name
    assert names(cloud) == GOOD_NAMES


BAD_NAMES: list[Any] = [
    "",
    " ",
    "x" * 256,
    "key_/.\\@:",
    "a/b",
    "ä",
    "a\n",
    " a",
    "a ",
    "a\0",
    5,
    None,
]


def test_names_that_are_refused(cloud: Cloud) -> None:
    for name in BAD_NAMES:
        assert make(cloud, name=name).status_code == 400, name
    assert names(cloud) == []


FIELDS: list[tuple[str, Any]] = [
    ("2.1", {"type": "ssh"}),
    ("2.2", {"type": "pgp"}),
    ("2.9", {"user_id": "joe"}),
    ("2.10", {"user_id": ""}),
    ("2.10", {"more": 1}),
]


def test_fields_that_are_refused(cloud: Cloud) -> None:
    for version, values in FIELDS:
        assert make(cloud, version, **values).status_code == 400, (version, values)


def test_a_name_is_taken_once_by_each_user(cloud: Cloud) -> None:
    assert make(cloud).status_code == 201
    result = make(cloud)
    assert result.status_code == 409
    assert result.json["conflictingRequest"]["message"] == "Key pair 'mine' already exists."
    assert make(cloud, name="MINE").status_code == 201
    assert make(cloud, user="ann:p").status_code == 201


@pytest.mark.parametrize(("version", "status"), [("2.1", 202), ("2.2", 204)])
def test_delete(cloud: Cloud, version: str, status: int) -> None:
    make(cloud)
    for expected in (status, 404):
        result = cloud.call("DELETE", "/os-keypairs/mine", version=version, user="joe:p")
        assert result.status_code == expected
    assert result.json["itemNotFound"]["message"] == "Keypair mine not found for user joe"
    assert cloud.call("GET", "/os-keypairs/mine", user="joe:p").status_code == 404


def test_others_do_not_have_it(cloud: Cloud) -> None:
    make(cloud)
    assert names(cloud, user="ann:p") == []
    assert cloud.call("GET", "/os-keypairs/mine", user="ann:p").status_code == 404
    assert cloud.call("DELETE", "/os-keypairs/mine", user="ann:p").status_code == 404
    # Projects do not matter.
    assert names(cloud, user="joe:q") == ["mine"]


def test_an_administrator_names_the_user(cloud: Cloud) -> None:
    assert make(cloud, user="admin:admin", user_id="joe").json["keypair"]["user_id"] == "joe"
    assert names(cloud) == ["mine"]
    assert names(cloud, "?user_id=joe", user="admin:admin") == ["mine"]
    assert names(cloud, "?user_id=joe", user="admin:admin", version="2.9") == []
    path = "/os-keypairs/mine?user_id=joe"
    assert cloud.get(path, user="admin:admin", version="2.10")["keypair"]["user_id"] == "joe"
    assert cloud.call("DELETE", path, user="admin:admin", version="2.9").status_code == 404
    assert cloud.call("DELETE", path, user="admin:admin", version="2.10").status_code == 204


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/os-keypairs?user_id=joe"),
        ("GET", "/os-keypairs/mine?user_id=joe"),
        ("DELETE", "/os-keypairs/mine?user_id=joe"),
        ("POST", "/os-keypairs"),
    ],
)
def test_nobody_else_names_the_user(cloud: Cloud, method: str, path: str) -> None:
    make(cloud)
    body = {"keypair": {"name": "x", "user_id": "joe"}} if method == "POST" else None
    result = cloud.call(method, path, body, version="2.10", user="ann:p")
    assert result.status_code == 403
    assert "os_compute_api:os-keypairs" in result.json["forbidden"]["message"]
    assert names(cloud) == ["mine"]


class TestPages:
    @pytest.fixture(autouse=True)
    def _pairs(self, cloud: Cloud) -> None:
        for name in ("c", "a", "d", "b"):
            make(cloud, name=name)

    def test_by_name(self, cloud: Cloud) -> None:
        assert names(cloud, "?limit=2") == ["a", "b"]
        assert names(cloud, "?limit=2&marker=b") == ["c", "d"]
        assert names(cloud, "?limit=0") == []

    def test_the_next_one_is_linked(self, cloud: Cloud) -> None:
        body = cloud.get("/os-keypairs?limit=3", user="joe:p", version="2.35")
        (link,) = body["keypairs_links"]
        assert link["href"].endswith("/v2.1/os-keypairs?limit=3&marker=c")
        body = cloud.get("/os-keypairs?limit=3&marker=c", user="joe:p", version="2.35")
        assert "keypairs_links" not in body

    def test_there_is_one_before(self, cloud: Cloud) -> None:
        body = cloud.get("/os-keypairs?limit=1&marker=zzz", user="joe:p", version="2.34")
        assert len(body["keypairs"]) == 4
        assert "keypairs_links" not in body

    @pytest.mark.parametrize("query", ["limit=-1", "limit=x", "marker=zzz"])
    def test_wrong(self, cloud: Cloud, query: str) -> None:
        result = cloud.call("GET", f"/os-keypairs?{query}", user="joe:p", version="2.35")
        assert result.status_code == 400


@pytest.mark.parametrize("path", ["/os-keypairs", "/os-keypairs/mine"])
def test_unknown_parameters(cloud: Cloud, path: str) -> None:
    make(cloud)
    for version, status in (("2.74", 200), ("2.75", 400)):
        result = cloud.call("GET", f"{path}?more=1", user="joe:p", version=version)
        assert result.status_code == status, result.text
    assert cloud.call("GET", f"{path}?user_id=joe", user="joe:p", version="2.75").status_code == 200


def test_quota_of_a_user(cloud: Cloud) -> None:
    cloud.conf.set_override("key_pairs", 1, group="quota")
    assert make(cloud).status_code == 201
    result = make(cloud, user="joe:other", name="second")
    assert result.status_code == 403
    assert result.json["forbidden"]["message"] == "Quota exceeded, too many key pairs."
    assert make(cloud, user="ann:p").status_code == 201
    cloud.call("DELETE", "/os-keypairs/mine", user="joe:p")
    assert make(cloud, name="second").status_code == 201


def test_a_server_keeps_the_name(cloud: Cloud) -> None:
    make(cloud)
    server = cloud.boot(user="joe:p", key_name="mine")
    cloud.call("DELETE", "/os-keypairs/mine", user="joe:p")
    assert cloud.get(f"/servers/{server}", user="joe:p")["server"]["key_name"] == "mine"
    for user in ("joe:p", "ann:p"):
        result = cloud.create(user=user, key_name="mine")
        assert result.status_code == 400
        assert result.json["badRequest"]["message"] == "Invalid key_name provided."
