"""What a condition is: a small function whose docstring says what must hold of what it returns.

The docstring has `pre:` and `post:` lines (PEP 316). CrossHair runs the function on symbolic
arguments, path by path, and confirms a condition when no path that `pre:` admits breaks `post:`.
Modules of conditions stand under the noun that they are about; ids are `module.function`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Checked = TypeVar("Checked", bound=Callable[..., Any])

UNBOUNDED = "no bound"
"""Of a condition that is confirmed over all values of its arguments."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: the clauses it is about, and what its arguments are bounded to, in words.

    `slow` when confirming it takes more than a few seconds.
    """

    id: str
    function: Callable[..., Any]
    clauses: tuple[str, ...]
    bound: str
    slow: bool = False

    @property
    def statement(self) -> str:
        """What holds, in a sentence: the docstring up to its `pre:` and `post:` lines."""
        lines = inspect.getdoc(self.function) or ""
        text = lines.partition("pre:")[0].partition("post:")[0]
        return " ".join(text.split())


CONDITIONS: dict[str, Condition] = {}
"""All conditions by id, in the order of their modules."""


def add(
    noun: str,
    function: Callable[..., Any],
    clauses: tuple[str, ...],
    bound: str,
    slow: bool = False,
) -> None:
    """Register a condition under a noun."""
    id = f"{noun}.{function.__name__}"
    assert id not in CONDITIONS, f"condition id {id} is used twice"
    assert clauses, f"condition {id} is about no clause"
    CONDITIONS[id] = Condition(id, function, clauses, bound, slow)


def about(
    *clauses: str, bound: str = UNBOUNDED, slow: bool = False
) -> Callable[[Checked], Checked]:
    """Register a function of a module of conditions; `clauses` are their ids."""

    def register(function: Checked) -> Checked:
        add(function.__module__.rpartition(".")[2], function, clauses, bound, slow)
        return function

    return register


def settled(value: int, most: int) -> int:
    """A value of 0 to `most` as a plain int: each is followed on a path of its own."""
    return next(plain for plain in range(most + 1) if plain == value)
