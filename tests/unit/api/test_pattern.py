# SPDX-License-Identifier: Apache-2.0
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.api import pattern

_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\w", r"\.", "x"])
_REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", ""])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, _REPEATS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda text: f"^{text}"),
        inner.map(lambda text: f"{text}$"),
    )


_EXPRESSIONS = st.recursive(_ATOMS, _grown, max_leaves=8)


@given(_EXPRESSIONS, st.text("abcx1. ", max_size=10))
def test_says_what_pythons_engine_says(expression: str, text: str) -> None:
    wanted = re.search(expression, text) is not None
    assert pattern.Pattern(expression).matches(text) is wanted
    wanted = re.match(expression, text) is not None
    assert pattern.Pattern(expression, anchored=True).matches(text) is wanted


@given(st.text(max_size=40), st.text(max_size=10))
def test_any_text_is_matched_or_refused(expression: str, text: str) -> None:
    try:
        compiled = pattern.Pattern(expression)
    except pattern.PatternError as error:
        assert len(error.message()) < 1000
    else:
        assert compiled.matches(text) in (True, False)


@pytest.mark.parametrize(
    "expression",
    ["", "|", "a|", "|a", "(a|)", "(", ")", "*", "a**", "[a", "[b-a]", "a{99999}", "a" * 10000]
    + [r"(a)\1", "(?=a)", "\\", "((((a{255}){255})))", "a{3,2}", "(" * 300],
)
def test_refused_with_a_short_text(expression: str) -> None:
    with pytest.raises(pattern.PatternError) as caught:
        pattern.Pattern(expression)
    assert len(caught.value.message()) < 200


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        (".*", "", True),
        ("^$", "", True),
        ("^a$", "ab", False),
        ("web-[0-9]+$", "my-web-17", True),
        ("a{2", "xa{2", True),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        (r"[\d_]", "7", True),
        ("Web", "web", False),
        ("ü", "süß", True),
        (r"a\|", "a|", True),
        ("[|]", "a|b", True),
    ],
)
def test_examples(expression: str, text: str, found: bool) -> None:
    assert pattern.Pattern(expression).matches(text) is found


def test_evil_expressions_take_no_time_v26() -> None:
    start = time.perf_counter()
    assert not pattern.Pattern("(a+)+$").matches("a" * 40 + "b")
    assert not pattern.Pattern("(.*a.*b){20}z").matches("ab" * 120)
    assert time.perf_counter() - start < 1.0
