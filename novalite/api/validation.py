# SPDX-License-Identifier: Apache-2.0
"""Reads and checks bodies: size, depth, JSON, schema. Every refusal names the field and its value.

A schema is JSON Schema (draft 4) with Nova's two additions: ``minimum`` and ``maximum`` also hold
for numbers given as text, and the formats of :mod:`novalite.api.formats`. In patterns ``$`` is the
end of the text, as in JSON Schema; to Python a line break may follow it.
"""

import functools
import json
import logging
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jsonschema
from jsonschema import validators

from novalite import exception
from novalite.api import formats, http, microversion

MAX_DEPTH = 32
# The attribute of a handler that holds what body() was told.
BODY = "body_schemas"
LOG = logging.getLogger(__name__)

# So much of a wrong value is shown in a message.
SHOWN = 200

_MEDIA_TYPES = ("", "application/json", "application/vnd.openstack.compute+json")
# A dollar sign that is not escaped; none of ours stands in a character class.
_END = re.compile(r"(?<!\\)\$")
_SURROGATE = re.compile(rb"\\u[dD][89abAB]")
Handler = TypeVar("Handler", bound=Callable[..., None])


class RequestTooLarge(exception.Invalid):
    msg_fmt = "Request is too large. The limit is %(limit)d bytes."


class UnsupportedMediaType(exception.Invalid):
    msg_fmt = "Unsupported Content-Type"


class MalformedBody(exception.Invalid):
    msg_fmt = "Malformed request body"


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 40 else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value


def _minimum(_validator: Any, bound: float, value: Any, _schema: Any) -> Iterator[Any]:
    number = _number(value)
    if number is not None and number < bound:
        yield jsonschema.ValidationError(f"{_shown(value)} is less than the minimum of {bound}")


def _maximum(_validator: Any, bound: float, value: Any, _schema: Any) -> Iterator[Any]:
    number = _number(value)
    if number is not None and number > bound:
        yield jsonschema.ValidationError(f"{_shown(value)} is greater than the maximum of {bound}")


def _matches(pattern: str, text: str) -> bool:
    return re.search(_at_the_end(pattern), text) is not None


@functools.cache
def _at_the_end(pattern: str) -> str:
    return _END.sub(r"\\Z", pattern)


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _named(validator: Any, patterns: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, schema in patterns.items():
            for name, item in value.items():
                if _matches(pattern, name):
                    yield from validator.descend(item, schema, path=name, schema_path=pattern)


def _additional(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[Any]:
    patterns = schema.get("patternProperties")
    if patterns is None or allowed is not False or not isinstance(value, dict):
        yield from _Draft.VALIDATORS["additionalProperties"](validator, allowed, value, schema)
        return
    known = schema.get("properties", ())
    others = [
        name
        for name in sorted(value)
        if name not in known and not any(_matches(pattern, name) for pattern in patterns)
    ]
    if others:
        shown = ", ".join(map(repr, others))
        verb = "does" if len(others) == 1 else "do"
        regexes = ", ".join(map(repr, sorted(patterns)))
        yield jsonschema.ValidationError(f"{shown} {verb} not match any of the regexes: {regexes}")


_Draft: Any = jsonschema.Draft4Validator
_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    _Draft,
    {
        "minimum": _minimum,
        "maximum": _maximum,
        "pattern": _pattern,
        "patternProperties": _named,
        "additionalProperties": _additional,
    },
)


class Schema:
    """One compiled schema; ``document`` is what it was made from."""

    def __init__(self, schema: dict[str, Any]):
        _Validator.check_schema(schema)
        self.document = schema
        self._validator = _Validator(schema, format_checker=formats.CHECKER)

    def check(self, value: Any) -> None:
        """Raise for the first thing that is wrong.

        :raises exception.ValidationError: naming field and value
        """
        error = next(self._validator.iter_errors(value), None)
        if error is not None:
            raise exception.ValidationError(detail=_explain(error))


def schemas(*steps: tuple[int, dict[str, Any]]) -> microversion.Ranges:
    """Compile the schemas of one body: pairs of (since which minor version, schema)."""
    return microversion.Ranges(*((since, Schema(schema)) for since, schema in steps))


def body(ranges: microversion.Ranges) -> Callable[[Handler], Handler]:
    """Decorator of a handler: ``req.state.body`` is its body and fits the schema.

    Both are found out when the handler first asks for the body, after it has asked for policy.
    """

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def checked(self: Any, req: Any, resp: Any, **params: str) -> None:
            def load() -> Any:
                document = read(req)
                ranges.at(req.state.version).check(document)
                return document

            req.state.load_body = load
            handler(self, req, resp, **params)

        checked.__dict__[BODY] = ranges
        return checked  # type: ignore[return-value]

    return decorate


def body_of(handler: Any) -> microversion.Ranges | None:
    """Return the schemas of a handler's body, or None if it takes none."""
    found: microversion.Ranges | None = getattr(handler, BODY, None)
    return found


def read(req: http.Request) -> Any:
    """Return the decoded body.

    :raises RequestTooLarge: more than [api] max_request_body_size bytes
    :raises MalformedBody: no JSON, nested too deep, a key twice, or text that no database takes
    """
    limit = req.state.max_body
    if (req.content_length or 0) > limit:
        raise RequestTooLarge(limit=limit)
    media_type = (req.content_type or "").partition(";")[0].strip().lower()
    if media_type not in _MEDIA_TYPES:
        raise UnsupportedMediaType()
    raw = _receive(req, limit + 1)
    if len(raw) > limit:
        raise RequestTooLarge(limit=limit)
    try:
        document = _DECODER.decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise MalformedBody() from error
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _too_deep(document):
        raise MalformedBody(f"Malformed request body: nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE.search(raw):
        _refuse_lone_surrogates(document)
    if b"\\u0000" in raw and _holds_nul(document):
        raise MalformedBody("Malformed request body: a text holds a NUL character")
    return document


def _receive(req: http.Request, size: int) -> bytes:
    """Return the body, *size* bytes of it at most; its end is its length or the last chunk."""
    chunked = "chunked" in (req.get_header("Transfer-Encoding") or "").lower()
    try:
        raw: bytes = (req.stream if chunked else req.bounded_stream).read(size)
    except Exception as error:
        # Each server has its own errors for a client that is too slow, gone, or cannot count.
        LOG.debug("A body could not be received: %r", error)
        raise MalformedBody("Malformed request: the body could not be received") from error
    return raw


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; of a key that stands twice nobody knows which value is meant."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise MalformedBody("Malformed request body: a key stands twice in one object")
    return made


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    """Read a number; what is too great would be written as Infinity, which is no JSON."""
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too great")
    return number


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_once
)


def _holds_nul(document: Any) -> bool:
    nodes = [document]
    while nodes:
        node = nodes.pop()
        if isinstance(node, str) and "\0" in node:
            return True
        if isinstance(node, dict):
            nodes += [*node.keys(), *node.values()]
        elif isinstance(node, list):
            nodes += node
    return False


def _too_deep(document: Any) -> bool:
    level, nodes = 0, [document]
    while nodes:
        level += 1
        if level > MAX_DEPTH:
            return True
        nodes = [
            child
            for node in nodes
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return False


def _refuse_lone_surrogates(document: Any) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise MalformedBody("Malformed request body: half of a surrogate pair") from error


def _shown(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}..."


def _explain(error: Any) -> str:
    message = str(error.message)
    if error.validator == "format":
        message = formats.message(error.validator_value, error.instance)
    if len(message) > 2 * SHOWN:
        # The library quotes the whole value first and says what is wrong with it last.
        message = f"{message[:SHOWN]}...{message[-SHOWN:]}"
    path = list(error.absolute_path)
    if error.validator == "additionalProperties" or not path:
        return f"Invalid input received: {message}" if not path else _at(path, error, message)
    return _at(path, error, message)


def _at(path: list[Any], error: Any, message: str) -> str:
    field = path[-1]
    if isinstance(field, int) and len(path) > 1:
        field = f"{path[-2]}/{field}"
    value = error.instance
    shown = value if isinstance(value, str) else _shown(value)
    if len(shown) > SHOWN:
        shown = f"{shown[:SHOWN]}..."
    return f"Invalid input for field/attribute {field}. Value: {shown}. {message}"
