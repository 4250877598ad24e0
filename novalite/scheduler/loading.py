# SPDX-License-Identifier: Apache-2.0
"""How names in options become classes of filters and weighers: ours, or somebody else's. Pure.

A name of our own is the class's name, or Nova's path to it (``nova.scheduler.filters.ram_filter.
RamFilter``). Somebody else's is ``module:Class`` or ``module.Class``, imported from where Python
finds it. Called by the registries in ``filters`` and ``weights``.
"""

import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from novalite import exception
from novalite.scheduler import demand, guard

T = TypeVar("T")
_NOVA = ("nova.scheduler.", "novalite.scheduler.")


def bare(name: str) -> str:
    """Return the name of a class of Nova's without its module; other names as they are."""
    return name.rpartition(".")[2] if name.startswith(_NOVA) and ":" not in name else name


@dataclass(frozen=True)
class Loader(Generic[T]):
    """One kind of classes.

    ``left_out`` are names of Nova's that are refused with the reason; ``everything`` are names
    that stand for all of ours; ``checks`` are what answers of others are held to.
    """

    kind: str
    base: type[T]
    ours: Mapping[str, type[T]]
    left_out: Mapping[str, str]
    everything: tuple[str, ...]
    checks: Mapping[str, guard.Check]

    def classes(self, names: Sequence[str], available: Sequence[str]) -> list[type[T]]:
        """Return the classes of these names, each once.

        :param available: names of everything, or paths; only what they name may be named without
            a path
        :raises exception.ConfigurationError: naming every name that is wrong and the valid ones
        """
        wrong: list[str] = []
        known: dict[str, type[T]] = {}
        for path in available:
            if path in self.everything:
                known.update(self.ours)
            elif (found := self._find(path, self.ours, wrong)) is not None:
                known[found.__name__] = found
        made = [self._find(name, known, wrong) for name in names]
        if wrong:
            raise exception.ConfigurationError(
                reason=f"unknown {self.kind}s: {', '.join(wrong)}; valid: {', '.join(known)}, or "
                f"module:Class for a {self.kind} of your own"
            )
        return list(dict.fromkeys(each for each in made if each is not None))

    def make(self, cls: type[T], arguments: Mapping[str, Any]) -> T:
        """Return one of a class.

        :raises exception.ConfigurationError: it cannot be made with these arguments
        """
        try:
            if cls not in self.ours.values():
                cls = guard.guarded(self.kind, cls, self.base, self.checks)
            return cls(**arguments)
        # Somebody else's class may do anything when made, but not end the process.
        except (Exception, SystemExit) as error:
            raise exception.ConfigurationError(
                reason=f"unknown {self.kind}s: {cls.__module__}:{cls.__name__} ({_said(error)})"
            ) from error

    def _find(self, name: str, known: Mapping[str, type[T]], wrong: list[str]) -> type[T] | None:
        """Return one class; None after *wrong* was told."""
        own = bare(name)
        if own in known:
            return known[own]
        if own in self.left_out:
            wrong.append(f"{name} (left out: {self.left_out[own]})")
        elif ":" not in name and "." not in name:
            wrong.append(name or "an empty name")
        else:
            try:
                return self._import(name)
            # Somebody else's module may do anything when imported, but not end the process.
            except (Exception, SystemExit) as error:
                wrong.append(f"{name} ({_said(error)})")
        return None

    def _import(self, path: str) -> type[T]:
        module, _, class_name = path.partition(":") if ":" in path else path.rpartition(".")
        found = getattr(importlib.import_module(module), class_name)
        if not (inspect.isclass(found) and issubclass(found, self.base)):
            raise TypeError(f"it must derive from {self.base.__module__}.{self.base.__name__}")
        if inspect.isabstract(found):
            raise TypeError(
                f"it must define {', '.join(sorted(getattr(found, '__abstractmethods__', ())))}"
            )
        unknown = sorted(set(getattr(found, "reads", ())) - demand.READABLE)
        if unknown:
            raise TypeError(f"a request has no {', '.join(unknown)} that it could read")
        return found


def _said(error: BaseException) -> str:
    """Return what an error says, and its kind where the text alone says too little."""
    if isinstance(error, ImportError | AttributeError | TypeError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"
