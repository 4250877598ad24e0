# SPDX-License-Identifier: Apache-2.0
"""The codec of everything that crosses the bus or is kept as JSON.

A registered class is a dataclass with a ``VERSION``. Its wire form is the dict of its fields plus
the class name and the version. Reading follows one rule: the same major version is required,
unknown fields are ignored, missing fields take their default. So a minor version adds a field
with a default, and anything else is a new major version.
"""

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
# Reads one field; None takes it as it is.
Codec = Callable[[Any], Any] | None

_TYPE = "novalite_object"
_VERSION = "version"
# The name under which a plain dict travels that has the key of an object's class: users choose the
# keys of their metadata and hints, and nobody shall make objects of ours by them.
_PLAIN, _ITEMS = "", "items"
_registry: dict[str, type] = {}
# The fields of each class by name, with what they are if nothing is said (_REQUIRED: must be said).
_shapes: dict[type, tuple[tuple[str, Any], ...]] = {}
_ATOMS = frozenset((str, int, float, bool, type(None)))
_REQUIRED = object()


class IncompatibleObject(ValueError):
    """An object of an unknown class or of another major version arrived."""


def register(cls: type[T]) -> type[T]:
    """Class decorator: make a dataclass known to :func:`encode` and :func:`decode`."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is not a dataclass")
    if cls.__name__ in _registry:
        raise TypeError(f"{cls.__name__} is registered twice")
    _registry[cls.__name__] = cls
    _shapes[cls] = tuple((field.name, _default(field)) for field in dataclasses.fields(cls))
    return cls


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _REQUIRED


def registered() -> dict[str, type]:
    """Return all registered classes by name."""
    return dict(_registry)


def encode(value: Any) -> Any:
    """Turn a value, with all objects in it, into JSON primitives; every field is there."""
    return value if type(value) in _ATOMS else _encode(value, False)


def pack(value: Any) -> Any:
    """Do what :func:`encode` does, but leave out fields that have their default.

    For what only :func:`decode` reads: half of an object is defaults, and every byte on the bus is
    written and read twice. Sender and receiver agree on defaults, since a default cannot change
    without a new major version (:func:`fingerprint`).
    """
    return value if type(value) in _ATOMS else _encode(value, True)


def _encode(value: Any, sparse: bool) -> Any:
    kind = type(value)
    if kind in _shapes:
        return _encode_object(value, kind, sparse)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        items = {
            str(key): item if type(item) in _ATOMS else _encode(item, sparse)
            for key, item in value.items()
        }
        return items if _TYPE not in items else {_TYPE: _PLAIN, _ITEMS: items}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [item if type(item) in _ATOMS else _encode(item, sparse) for item in value]
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"a {kind.__name__} cannot be encoded")


def _encode_object(value: Any, kind: type, sparse: bool) -> dict[str, Any]:
    wire: dict[str, Any] = {_TYPE: kind.__name__, _VERSION: _version(kind)}
    for name, default in _shapes[kind]:
        item = getattr(value, name)
        if type(item) in _ATOMS:
            # 0, 0.0 and False are equal but not the same on the wire.
            if not sparse or item != default or type(item) is not type(default):
                wire[name] = item
        elif not sparse or item != default:
            wire[name] = _encode(item, sparse)
    return wire


def decode(wire: Any) -> Any:
    """Turn what :func:`encode` or :func:`pack` made back into objects.

    :raises IncompatibleObject: unknown class, or another major version
    """
    if isinstance(wire, dict):
        if _TYPE in wire:
            if wire[_TYPE] != _PLAIN:
                return _decode_object(wire)
            wire = wire[_ITEMS]
        return {key: item if type(item) in _ATOMS else decode(item) for key, item in wire.items()}
    if isinstance(wire, list):
        return [item if type(item) in _ATOMS else decode(item) for item in wire]
    return wire


def _decode_object(wire: dict[str, Any]) -> Any:
    cls = _registry.get(wire[_TYPE])
    if cls is None:
        raise IncompatibleObject(f"unknown object {wire[_TYPE]}")
    theirs, ours = str(wire.get(_VERSION, "")), _version(cls)
    if theirs != ours and theirs.partition(".")[0] != ours.partition(".")[0]:
        raise IncompatibleObject(f"{cls.__name__} {theirs} cannot be read as {ours}")
    readers = _readers(cls)
    return cls(
        **{
            name: reader(item) if (reader := readers[name]) else item
            for name, item in wire.items()
            if name in readers
        }
    )


def _version(cls: type) -> str:
    return str(getattr(cls, "VERSION", "1.0"))


@functools.cache
def _readers(cls: Any) -> dict[str, Codec]:
    hints = typing.get_type_hints(cls)
    return {name: _reader(hints[name]) for name, _default in _shapes[cls]}


def _reader(hint: Any) -> Codec:
    """Return the function that reads one field; enums and tuples need their type, the rest not."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [_reader(arg) for arg in typing.get_args(hint) if arg is not type(None)]
        if len(inner) == 1:
            read = inner[0]
            return None if read is None else lambda wire: None if wire is None else read(wire)
        return decode
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint
    if origin is tuple:
        return lambda wire: tuple(decode(wire))
    if origin is frozenset:
        return lambda wire: frozenset(decode(wire))
    return None if hint in (str, int, float, bool) else decode


def fingerprint(cls: type) -> str:
    """Return the text that must not change without a new version: fields, types, defaults."""
    parts = []
    for field in dataclasses.fields(cls):
        default = "required"
        if field.default is not dataclasses.MISSING:
            default = repr(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            default = "factory"
        parts.append(f"{field.name}: {field.type} = {default}")
    return f"{cls.__name__} {_version(cls)} ({'; '.join(parts)})"
