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
Codec = Callable[[Any], Any]

_TYPE = "novalite_object"
_VERSION = "version"
_registry: dict[str, type] = {}
_names: dict[type, tuple[str, ...]] = {}


class IncompatibleObject(ValueError):
    """An object of an unknown class or of another major version arrived."""


def register(cls: type[T]) -> type[T]:
    """Class decorator: make a dataclass known to :func:`encode` and :func:`decode`."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is not a dataclass")
    if cls.__name__ in _registry:
        raise TypeError(f"{cls.__name__} is registered twice")
    _registry[cls.__name__] = cls
    _names[cls] = tuple(field.name for field in dataclasses.fields(cls))
    return cls


def registered() -> dict[str, type]:
    """Return all registered classes by name."""
    return dict(_registry)


def encode(value: Any) -> Any:
    """Turn a value, with all objects in it, into JSON primitives."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    name = type(value).__name__
    if name in _registry:
        wire: dict[str, Any] = {_TYPE: name, _VERSION: _version(type(value))}
        for field in _names[type(value)]:
            wire[field] = encode(getattr(value, field))
        return wire
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"a {type(value).__name__} cannot be encoded")


def decode(wire: Any) -> Any:
    """Turn what :func:`encode` made back into objects.

    :raises IncompatibleObject: unknown class, or another major version
    """
    if isinstance(wire, dict):
        if _TYPE in wire:
            return _decode_object(wire)
        return {key: decode(item) for key, item in wire.items()}
    if isinstance(wire, list):
        return [decode(item) for item in wire]
    return wire


def _decode_object(wire: dict[str, Any]) -> Any:
    cls = _registry.get(wire[_TYPE])
    if cls is None:
        raise IncompatibleObject(f"unknown object {wire[_TYPE]}")
    theirs, ours = str(wire.get(_VERSION, "")), _version(cls)
    if theirs.partition(".")[0] != ours.partition(".")[0]:
        raise IncompatibleObject(f"{cls.__name__} {theirs} cannot be read as {ours}")
    readers = _readers(cls)
    return cls(**{name: reader(wire[name]) for name, reader in readers.items() if name in wire})


def _version(cls: type) -> str:
    return str(getattr(cls, "VERSION", "1.0"))


@functools.cache
def _readers(cls: Any) -> dict[str, Codec]:
    hints = typing.get_type_hints(cls)
    return {name: _reader(hints[name]) for name in _names[cls]}


def _reader(hint: Any) -> Codec:
    """Return the function that reads one field; enums and tuples need their type, the rest not."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [_reader(arg) for arg in typing.get_args(hint) if arg is not type(None)]
        if len(inner) == 1:
            read = inner[0]
            return lambda wire: None if wire is None else read(wire)
        return decode
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint
    if origin is tuple:
        return lambda wire: tuple(decode(wire))
    if origin is frozenset:
        return lambda wire: frozenset(decode(wire))
    if hint in (str, int, float, bool):
        return lambda wire: wire
    return decode


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
