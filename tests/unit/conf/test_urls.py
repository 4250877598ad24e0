# SPDX-License-Identifier: Apache-2.0
"""A URL that can be read in two ways is refused; one that is encoded means what was meant."""

import urllib.parse

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from novalite.conf import urls

REAL = "p@ss/w:rd#+%="
CLEAR = urllib.parse.quote(REAL, safe="")


@pytest.mark.parametrize(
    "url",
    [
        "rabbit://",
        "rabbit://host",
        "rabbit://user:pass@host:5672/vhost",
        "rabbit://user:pass@host:5672//",
        f"rabbit://{CLEAR}:{CLEAR}@host:5672/{CLEAR}",
        "rabbit://user:a+b=c@host/",
        "rabbit://u:p@one:1,u:p@two:2/vhost?ssl=1",
        "rabbit://one:1,two:2/vhost",
        "rabbit://u:p@[::1]:5672/v",
        f"mysql+pymysql://{CLEAR}:{CLEAR}@host/name?charset=utf8mb4",
        "postgresql+psycopg://user@/name?host=/run/postgresql",
    ],
)
def test_clear(url: str) -> None:
    assert urls.is_clear(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:5672",
        "rabbit:/host",
        f"rabbit://user:{REAL}@host:5672/vhost",
        f"rabbit://{REAL}:pass@host:5672/vhost",
        f"rabbit://user:pass@host:5672/{REAL}",
        "rabbit://user:a/b@host/v",
        "rabbit://user:12/b@host/v",
        "rabbit://user:a@b@host/v",
        "rabbit://user:a:b@host/v",
        "rabbit://user:a#b@host/v",
        "rabbit://user:a?b@host/v",
        "rabbit://user:a%zz@host/v",
        "rabbit://user:100%@host/v",
        "rabbit://user:a,b@host/v",
        "rabbit://user:1,b@host/v",
        "rabbit://user:@,@host/v",
        "rabbit://user:a@,user:b@host/v",
        "rabbit://user:a@one,b@host/v",
        "mysql+pymysql://user:@,@host/name",
        "mysql+pymysql://user:1,b@host/name",
        "rabbit://user:a b@host/v",
        "rabbit://user:pass@ho st/v",
        "rabbit://user:pass@host:0/v",
        "rabbit://user:pass@host:65536/v",
        "rabbit://user:pass@host:port/v",
    ],
)
def test_not_clear(url: str) -> None:
    assert not urls.is_clear(url)


@given(st.text(min_size=1), st.text(min_size=1))
def test_encoded_is_always_clear(user: str, password: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in user + password):
        return
    url = f"rabbit://{urllib.parse.quote(user, '')}:{urllib.parse.quote(password, '')}@host:1/v"
    assert urls.is_clear(url)


@given(st.text(alphabet="ab1@/:#?%+=,&", min_size=1, max_size=12))
def test_what_is_clear_is_read_alike(password: str) -> None:
    """A password as it is typed either is refused or is what the database's parser finds."""
    url = f"mysql+pymysql://user:{password}@host/name"
    if urls.is_clear(url):
        assert sa.make_url(url).password == urllib.parse.unquote(password)
        assert sa.make_url(url).host == "host"
