# SPDX-License-Identifier: Apache-2.0
"""Tells whether a URL with a password in it means what its writer meant.

The parsers behind the bus and the database guess: with a ``/`` or an ``@`` in a password that is
not percent-encoded they fail as "bad port", or log in somewhere else with half of the password.
So a URL that could be read in two ways is refused. Nothing here ever returns a part of the URL.
"""

import re
import string

# What may stand in a user name, a password or a virtual host as it is (RFC 3986, without the
# characters that separate the parts of our URLs).
_PLAIN = frozenset(string.ascii_letters + string.digits + "-._~!$&'()*+;=%")
_PATH = _PLAIN | frozenset("/:,")
_QUERY = _PATH | frozenset("?[]")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(?::(\d{1,5}))?")
# Schemes in which a comma separates hosts.
_LISTS = ("rabbit", "kombu")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?")


def is_clear(url: str) -> bool:
    """Tell whether ``scheme://[user[:password]@]host[:port][,...][/path][?query]`` can be read in
    one way only."""
    match = _URL.fullmatch(url)
    if match is None or _BAD_PERCENT.search(url):
        return False
    scheme, authority, path, query = match.groups()
    if not _PATH.issuperset(path) or not _QUERY.issuperset(query or ""):
        return False
    parts = authority.split(",")
    if len(parts) > 1 and not (scheme in _LISTS and _are_alike(parts)):
        return False
    return all(_is_clear_host(part) for part in parts)


def _are_alike(parts: list[str]) -> bool:
    """Tell whether these are several hosts and not one whose password has a comma in it."""
    logins = [part.rpartition("@")[:2] for part in parts]
    shapes = {(separator, ":" in login) for login, separator in logins}
    return len(shapes) == 1 and not any(part.endswith("@") for part in parts)


def _is_clear_host(part: str) -> bool:
    login, _, address = part.rpartition("@")
    if login.count(":") > 1 or not (_PLAIN | {":"}).issuperset(login):
        return False
    match = _HOST.fullmatch(address)
    return match is not None and int(match.group(2) or 1) in range(1, 65536)
