# SPDX-License-Identifier: Apache-2.0
"""Regular expressions from users, matched in time that grows with the text alone.

The ``name`` filter of GET /servers is a regular expression. A backtracking engine lets one request
stop the service, and each database has an engine of its own, so the same filter would mean
different things. RE2 answers in linear time, and here, whatever the database is.
"""

import re

import re2

from novalite import exception

MAX_LENGTH = 255
# Bytes that one compiled expression may take.
MAX_MEMORY = 4 << 20

# An alternative without any text: some databases' engines refuse it, so it means nothing for sure.
_ESCAPED = re.compile(r"\\.|\[\^?\]?[^]]*\]")
_EMPTY_ALTERNATIVE = re.compile(r"(?:^|[(|])(?:\||$)|\|\)")


class PatternError(exception.Invalid):
    """The text is no regular expression, or a too costly one."""

    msg_fmt = "Invalid regular expression: %(reason)s"


class Pattern:
    """One expression of a user.

    :param anchored: it must match from the beginning of a text, as the filter ``ip`` wants
    :raises PatternError: it cannot be used; the text says why in less than 200 characters
    """

    def __init__(self, text: str, *, anchored: bool = False):
        if not text or _EMPTY_ALTERNATIVE.search(_ESCAPED.sub("x", text)):
            raise PatternError(reason="an empty alternative matches nothing in particular")
        if len(text) > MAX_LENGTH:
            raise PatternError(reason=f"longer than {MAX_LENGTH} characters")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_MEMORY
        try:
            compiled = re2.compile(text, options)
        except re2.error as error:
            detail = error.args[0] if error.args else b""
            reason = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
            raise PatternError(reason=reason[:120]) from None
        self._find = compiled.match if anchored else compiled.search

    def matches(self, text: str) -> bool:
        """Tell whether the expression matches the text, or its beginning if anchored."""
        return self._find(text) is not None
