"""The one way in which conditions are checked: CrossHair, through its API.

Its exit status is 0 also for what it could not decide, so the states of its messages are read.
CrossHair is no dependency of kvspec: it is imported when a condition is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvspec.errors import BadInput

SECONDS = 120.0
"""Given to each `post:`, many times what the slowest needs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What CrossHair says of one `post:`: the name of its state, and why it is in it."""

    state: str
    message: str

    @property
    def confirmed(self) -> bool:
        """Whether every path was followed to its end and none breaks it."""
        return self.state == "CONFIRMED"


def examine(function: Callable[..., Any]) -> list[Answer]:
    """An answer for each `post:` of a function. Raises `BadInput` where CrossHair is missing."""
    try:
        from crosshair.core_and_libs import analyze_function, run_checkables
        from crosshair.options import AnalysisOptionSet
    except ImportError as error:
        raise BadInput(
            f"symbolic checks need CrossHair ({error}): pip install crosshair-tool"
        ) from None
    options = AnalysisOptionSet(
        per_condition_timeout=SECONDS, per_path_timeout=SECONDS / 4, report_all=True
    )
    messages = run_checkables(analyze_function(function, options))
    return [Answer(message.state.name, message.message) for message in messages]


def posts(function: Callable[..., Any]) -> int:
    """How many `post:` lines a function has: so many answers there must be."""
    return (function.__doc__ or "").count("post:")


def shortfall(function: Callable[..., Any]) -> str:
    """Why a function is not confirmed, in one line; nothing where it is."""
    answers, wanted = examine(function), posts(function)
    if len(answers) != wanted or not wanted:
        return f"{len(answers)} answers for {wanted} conditions"
    open_ = next((answer for answer in answers if not answer.confirmed), None)
    return f"{open_.state}: {' '.join(open_.message.split())}" if open_ else ""
