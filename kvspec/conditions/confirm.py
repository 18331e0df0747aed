"""The one way in which conditions are checked: CrossHair, through its API.

Its exit status is 0 also for what it could not decide, so the states of its messages are read.
CrossHair is no dependency of kvspec: it is imported when a condition is checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from kvspec.errors import BadInput

from .model import Condition

SECONDS = 120.0
"""Given to each `post:`, many times what the slowest needs."""

REFUTED = ("POST_FAIL", "POST_ERR", "EXEC_ERR")
"""States in which there is a counterexample."""

Verdict = Literal["confirmed", "refuted", "undecided"]


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


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """What came of one condition: `reason` says why it is not confirmed, where it is not."""

    id: str
    clauses: tuple[str, ...]
    bound: str
    verdict: Verdict
    seconds: float
    reason: str = ""

    @property
    def noun(self) -> str:
        """What the condition is about: the part of the id before the dot."""
        return self.id.partition(".")[0]


def confirm(condition: Condition) -> ConditionResult:
    """Check one condition. Raises `BadInput` where CrossHair is missing."""
    began = time.monotonic()
    answers, wanted = examine(condition.function), posts(condition.function)
    failed = [answer for answer in answers if not answer.confirmed]
    reason = ""
    verdict: Verdict = "confirmed"
    if failed:
        worst = next((answer for answer in failed if answer.state in REFUTED), failed[0])
        reason = f"{worst.state}: {' '.join(worst.message.split())}"
        verdict = "refuted" if worst.state in REFUTED else "undecided"
    elif len(answers) != wanted or not wanted:
        reason, verdict = f"CrossHair answered {len(answers)} of {wanted} times", "undecided"
    return ConditionResult(
        id=condition.id,
        clauses=condition.clauses,
        bound=condition.bound,
        verdict=verdict,
        seconds=round(time.monotonic() - began, 3),
        reason=reason,
    )
