# SPDX-License-Identifier: Apache-2.0
"""Filters and weighers of somebody else, held to what they promise.

Called by :mod:`loading` for every class that is not ours. One that raises, or answers with what is
no answer, must be known by its name: else its mistake shows up far away, in our own code. Pure.
"""

import math
from collections.abc import Callable, Mapping, Sized
from typing import Any

from novalite import exception
from novalite.objects.capacity import Room
from novalite.objects.reason import Reason

# Tells what is wrong with the answer to these arguments; None: nothing is.
Check = Callable[[Any, tuple[Any, ...]], str | None]


def guarded(kind: str, cls: type, base: type, checks: Mapping[str, Check]) -> type:
    """Return a class of the same name whose methods answer rightly or say who did not.

    :param base: methods that a class has from it are ours and need no check
    :param checks: what to check, by the names of methods
    """
    theirs = {
        name: _method(kind, getattr(cls, name), check)
        for name, check in checks.items()
        if getattr(cls, name) is not getattr(base, name)
    }
    return type(cls.__name__, (cls,), {"__module__": cls.__module__, **theirs})


def _method(kind: str, method: Callable[..., Any], check: Check) -> Callable[..., Any]:
    def answered(self: Any, *args: Any) -> Any:
        who = f"{kind} {type(self).__name__}"
        try:
            answer = method(self, *args)
        except exception.SchedulerExtensionBroken:
            raise
        # Somebody else's code may do anything, and must not end the process.
        except (Exception, SystemExit) as error:
            raise exception.SchedulerExtensionBroken(who=who, what=type(error).__name__) from error
        wrong = check(answer, args)
        if wrong is not None:
            raise exception.SchedulerExtensionBroken(who=who, what=wrong)
        return answer

    return answered


def _truth(answer: Any, _args: tuple[Any, ...]) -> str | None:
    return (
        None if isinstance(answer, bool) else f"applies() must answer True or False{_not(answer)}"
    )


def _reason(answer: Any, _args: tuple[Any, ...]) -> str | None:
    if answer is None:
        return None
    if not isinstance(answer, Reason):
        return f"it must answer None or a Reason{_not(answer)}"
    if not isinstance(answer.code, str) or not isinstance(answer.detail, str | None):
        return "code and detail of a Reason must be text"
    numbers = (number for number in answer[1:-1] if number is not None)
    return None if all(map(_finite, numbers)) else "the numbers of a Reason must be finite"


def _reasons(answer: Any, args: tuple[Any, ...]) -> str | None:
    wrong = _one_each(answer, args[0])
    return wrong or next(filter(None, (_reason(each, ()) for each in answer)), None)


def _room(answer: Any, _args: tuple[Any, ...]) -> str | None:
    good = answer is None or isinstance(answer, Room)
    return None if good else f"room() must answer None or a Room{_not(answer)}"


def _weight(answer: Any, _args: tuple[Any, ...]) -> str | None:
    return None if _finite(answer) else f"it must weigh with finite numbers{_not(answer)}"


def _weights(answer: Any, args: tuple[Any, ...]) -> str | None:
    wrong = _one_each(answer, args[0])
    return wrong or next(filter(None, (_weight(each, ()) for each in answer)), None)


def _one_each(answer: Any, asked: Sized) -> str | None:
    if not isinstance(answer, list) or len(answer) != len(asked):
        return "it must answer with a list of one item for each host"
    return None


def _finite(number: Any) -> bool:
    try:
        return isinstance(number, int | float) and math.isfinite(number)
    except OverflowError:  # A whole number beyond every float.
        return False


def _not(answer: Any) -> str:
    return f", not with {answer if isinstance(answer, float) else type(answer).__name__}"


FILTER: Mapping[str, Check] = {
    "applies": _truth,
    "examine": _reason,
    "refusals": _reasons,
    "room": _room,
}
WEIGHER: Mapping[str, Check] = {
    "applies": _truth,
    "weigh": _weight,
    "column": _weights,
    "clamp": _weights,
    "normalise": _weights,
    "weighted": _weights,
    "multiplier_on": _weight,
}
