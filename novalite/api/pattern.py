# SPDX-License-Identifier: Apache-2.0
"""Regular expressions from users, matched in time that grows with the text alone.

The ``name`` filter of GET /servers is a regular expression. A backtracking engine lets one request
stop the service, and each database has an engine of its own, so the same filter would mean
different things. Here the common subset of all of them is turned into a nondeterministic automaton
and run as a deterministic one whose states are made when they are first needed.

Known: literals, ``.``, ``[...]`` with ranges, ``*`` ``+`` ``?`` ``{m,n}`` (lazy forms too, since
only "does it match" is asked), groups, ``|``, ``^``, ``$``, ``\\d \\w \\s`` and their opposites.
Refused: empty alternatives, back references, look-around, flags. Letters match as written.
"""

from dataclasses import dataclass, field
from typing import NoReturn

from novalite import exception

MAX_LENGTH = 255
MAX_REPEAT = 255
MAX_STATES = 1000
# Steps of the nondeterministic automaton that one request may cost, about a second.
MAX_WORK = 2_000_000
# A deterministic automaton whose states hold more than this is thrown away and begun anew.
_MAX_CACHED = 200_000

_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}


class PatternError(exception.Invalid):
    """The text is no regular expression of the known subset, or costs too much."""

    msg_fmt = "Invalid regular expression: %(reason)s"


@dataclass(slots=True)
class _Chars:
    """A set of characters."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    negated: bool = False

    def has(self, char: str) -> bool:
        found = any(low <= char <= high for low, high in self.ranges) or any(
            _in_class(name, char) for name in self.classes
        )
        return found != self.negated


def _in_class(name: str, char: str) -> bool:
    kind = name.lower()
    if kind == "d":
        found = char.isdecimal()
    elif kind == "w":
        found = char.isalnum() or char == "_"
    else:
        found = char.isspace()
    return found == name.islower()


@dataclass(slots=True)
class _Node:
    """One node of the parsed expression: chars, cat, alt, repeat, bol, eol."""

    kind: str
    chars: _Chars | None = None
    children: list["_Node"] = field(default_factory=list)
    low: int = 0
    high: int | None = None


class _Parser:
    def __init__(self, text: str):
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> _Node:
        node = self._alternatives()
        if self._at < len(self._text):
            self._fail("a ) without its (")
        return node

    def _fail(self, why: str) -> NoReturn:
        raise PatternError(reason=f"{why} at position {self._at}")

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _next(self) -> str:
        char = self._peek()
        if not char:
            self._fail("unexpected end")
        self._at += 1
        return char

    def _alternatives(self) -> _Node:
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _Node("alt", children=options)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        if not parts:
            self._fail("an empty alternative")
        return parts[0] if len(parts) == 1 else _Node("cat", children=parts)

    def _atom(self) -> _Node:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return _Node("chars", chars=self._set())
        if char == "\\":
            return _Node("chars", chars=self._escape())
        if char == ".":
            return _Node("chars", chars=_Chars([("\n", "\n")], negated=True))
        if char in "^$":
            return _Node("bol" if char == "^" else "eol")
        if char in "*+?":
            self._at -= 1
            self._fail("nothing to repeat")
        return _Node("chars", chars=_Chars([(char, char)]))

    def _group(self) -> _Node:
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                self._fail("only plain groups and (?:...) are supported")
            self._at += 2
        self._depth += 1
        if self._depth > 20:
            self._fail("groups nested too deep")
        node = self._alternatives()
        if self._peek() != ")":
            self._fail("a ( without its )")
        self._at += 1
        self._depth -= 1
        return node

    def _escape(self) -> _Chars:
        char = self._next()
        if char in "dDwWsS":
            return _Chars(classes=[char])
        char = _CONTROLS.get(char, char)
        if char.isalnum():
            self._fail(f"\\{char} is not supported")
        return _Chars([(char, char)])

    def _set(self) -> _Chars:
        chars = _Chars()
        if self._peek() == "^":
            self._at += 1
            chars.negated = True
        first = True
        while first or self._peek() != "]":
            first = False
            self._set_member(chars)
        self._at += 1
        return chars

    def _set_member(self, chars: _Chars) -> None:
        low = self._set_char(chars)
        if low is None:
            return
        following = self._text[self._at : self._at + 2]
        if following[:1] != "-" or following[1:] in ("", "]"):
            chars.ranges.append((low, low))
            return
        self._at += 1
        high = self._set_char(chars)
        if high is None or high < low:
            self._fail("a bad range of characters")
        chars.ranges.append((low, high))

    def _set_char(self, chars: _Chars) -> str | None:
        """Return the next character of a set; a class like \\d goes into *chars* instead."""
        char = self._next()
        if char == "[" and self._peek() in (":", ".", "="):
            self._fail("named classes of characters are not supported")
        if char != "\\":
            return char
        escaped = self._escape()
        if escaped.classes:
            chars.classes.extend(escaped.classes)
            return None
        return escaped.ranges[0][0]

    def _repeated(self, node: _Node) -> _Node:
        bounds = self._bounds()
        if bounds is None:
            return node
        if node.kind in ("bol", "eol"):
            self._fail("nothing to repeat")
        if self._peek() == "?":
            self._at += 1
        if self._peek() in ("*", "+", "?") or self._bounds() is not None:
            self._fail("multiple repeat")
        return _Node("repeat", children=[node], low=bounds[0], high=bounds[1])

    def _bounds(self) -> tuple[int, int | None] | None:
        char = self._peek()
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if char in simple:
            self._at += 1
            return simple[char]
        end = self._text.find("}", self._at)
        if char != "{" or end < 0:
            return None
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if not (low + high).isascii() or not (low + high).isdigit():
            return None  # as everywhere, a brace that is no repeat stands for itself
        if len(low) > 3 or len(high) > 3:
            self._fail(f"more than {MAX_REPEAT} repeats")
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            self._fail(f"repeats must be in order and not above {MAX_REPEAT}")
        self._at = end + 1
        return least, most


class _Program:
    """The nondeterministic automaton: ``eps`` are free moves, ``on`` the move on a character."""

    def __init__(self, node: _Node):
        self.eps: list[list[tuple[int, str]]] = []
        self.on: list[tuple[_Chars, int] | None] = []
        self.start = self._state()
        self.end = self._build(node, self.start)

    def _state(self) -> int:
        if len(self.eps) >= MAX_STATES:
            raise PatternError(reason="it is too large")
        self.eps.append([])
        self.on.append(None)
        return len(self.eps) - 1

    def _build(self, node: _Node, start: int) -> int:
        """Add the states of *node* behind *start* and return its end."""
        if node.kind == "cat":
            for child in node.children:
                start = self._build(child, start)
            return start
        if node.kind == "repeat":
            return self._repeat(node, start)
        end = self._state()
        if node.kind == "chars" and node.chars is not None:
            self.on[start] = (node.chars, end)
            return end
        if node.kind == "alt":
            for child in node.children:
                self._enter(start, child, end)
        else:
            self.eps[start].append((end, node.kind))
        return end

    def _enter(self, start: int, child: _Node, end: int) -> None:
        inner = self._state()
        self.eps[start].append((inner, ""))
        self.eps[self._build(child, inner)].append((end, ""))

    def _repeat(self, node: _Node, start: int) -> int:
        child = node.children[0]
        for _ in range(node.low):
            start = self._build(child, self._step(start))
        end = self._state()
        if node.high is None:
            loop = self._step(start)
            inner = self._step(loop)
            self.eps[self._build(child, inner)].append((loop, ""))
            self.eps[loop].append((end, ""))
            return end
        for _ in range(node.high - node.low):
            self.eps[start].append((end, ""))
            start = self._build(child, self._step(start))
        self.eps[start].append((end, ""))
        return end

    def _step(self, start: int) -> int:
        """Return a new state behind *start*, so that a loop never leads back into another one."""
        state = self._state()
        self.eps[start].append((state, ""))
        return state

    def closure(self, states: set[int], *, bol: bool, eol: bool) -> frozenset[int]:
        """Return all states that free moves reach."""
        found, todo = set(states), list(states)
        while todo:
            for target, needs in self.eps[todo.pop()]:
                if (needs == "bol" and not bol) or (needs == "eol" and not eol):
                    continue
                if target not in found:
                    found.add(target)
                    todo.append(target)
        return frozenset(found)


class Pattern:
    """A compiled expression.

    :param anchored: match from the first character on, as for addresses, instead of anywhere
    :raises PatternError: empty, too long, or not of the known subset
    """

    def __init__(self, text: str, *, anchored: bool = False):
        if not text:
            raise PatternError(reason="it is empty")
        if len(text) > MAX_LENGTH:
            raise PatternError(reason=f"it is longer than {MAX_LENGTH} characters")
        self._literal = None if _SPECIAL & set(text) else text
        self._anchored = anchored
        self._program = _Program(_Parser(text).parse())
        self._work = 0
        self._forget()

    def _forget(self) -> None:
        program = self._program
        # In the middle of a text a search may always begin anew.
        self._again = set() if self._anchored else {program.start}
        self._moves: list[dict[str, int]] = []
        self._sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._ends: dict[int, bool] = {}
        self._cached = 0
        self._first = self._number(program.closure({program.start}, bol=True, eol=False))

    def _number(self, states: frozenset[int]) -> int:
        number = self._numbers.get(states)
        if number is None:
            number = self._numbers[states] = len(self._sets)
            self._sets.append(states)
            self._moves.append({})
            self._cached += len(states)
        return number

    def matches(self, text: str) -> bool:
        """Tell whether the expression is found in *text*.

        :raises PatternError: the texts so far have cost more than MAX_WORK
        """
        if self._literal is not None:
            return text.startswith(self._literal) if self._anchored else self._literal in text
        if self._cached > _MAX_CACHED:
            self._forget()
        end, state = self._program.end, self._first
        if end in self._sets[state]:
            return True
        for char in text:
            following = self._moves[state].get(char)
            if following is None:
                following = self._moves[state][char] = self._move(state, char)
            state = following
            if end in self._sets[state]:
                return True
        return self._at_end(state, empty=not text)

    def _move(self, state: int, char: str) -> int:
        self._work += len(self._sets[state])
        if self._work > MAX_WORK:
            raise PatternError(reason="it takes too long; write it simpler")
        reached = set(self._again)
        for number in self._sets[state]:
            move = self._program.on[number]
            if move is not None and move[0].has(char):
                reached.add(move[1])
        return self._number(self._program.closure(reached, bol=False, eol=False))

    def _at_end(self, state: int, *, empty: bool) -> bool:
        if empty:
            states = self._program.closure({self._program.start}, bol=True, eol=True)
            return self._program.end in states
        if state not in self._ends:
            states = self._program.closure(set(self._sets[state]), bol=False, eol=True)
            self._ends[state] = self._program.end in states
        return self._ends[state]
