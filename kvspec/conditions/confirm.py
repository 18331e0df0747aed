"""The one way in which conditions are checked: CrossHair, through its API.

Its exit status is 0 also for what it could not decide, so the states of its messages are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosshair.core_and_libs import analyze_function, run_checkables
from crosshair.options import AnalysisOptionSet
from crosshair.statespace import MessageType

OPTIONS = AnalysisOptionSet(
    per_condition_timeout=120.0, per_path_timeout=30.0, report_all=True, max_iterations=10_000
)


def verdicts(function: Callable[..., Any]) -> list[MessageType]:
    """What CrossHair says of each `post:` of a function."""
    return [
        message.state
        for message in run_checkables(analyze_function(function, OPTIONS))
    ]
