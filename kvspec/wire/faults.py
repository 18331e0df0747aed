"""What can go wrong with a child process: what happened, likely causes, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvspec.errors import TargetUnusable


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a conversation ends early."""

    what: str
    causes: str
    hint: str


NOT_STARTED = Fault(
    "the program cannot be started",
    "a wrong path, or a file that is not executable",
    "run the command in a shell; build it first where it has to be built",
)
DIED = Fault(
    "the program ended",
    "a failed assertion, an uncaught exception, or a main loop that stops after one line",
    "answer what goes wrong with an error, and read lines until stop",
)
CLOSED = Fault(
    "the program closed its output but goes on",
    "standard output was redirected or closed",
    "keep standard output open until stop",
)
HUNG = Fault(
    "no answer",
    "an endless loop, a lock, or an answer that waits in a buffer",
    "flush standard output after each line; a slow engine gets more time with cmd:--seconds=N",
)
UNFINISHED = Fault(
    "an answer began, and its line did not end",
    "a missing line end, or an answer that waits in a buffer",
    "end each answer with a line feed and flush",
)
NOT_READING = Fault(
    "the program does not read its input",
    "a main loop that waits for something else than the next line",
    "read a line, answer it, flush, and read the next",
)
FLOODED = Fault(
    "an answer without end",
    "a loop that prints, or a binary file on standard output",
    "print one line for each line read; logs go to standard error",
)
GARBAGE = Fault(
    "the line is no answer",
    "a log line or a banner on standard output, or a library that prints",
    "print nothing but answers on standard output; logs go to standard error",
)
WRONG_FORM = Fault(
    "the answer has the wrong form",
    "a field that is missing, misspelt or of another type",
    "compare it with docs/protocol.md or kvspec/schema/answer.json",
)
OUT_OF_TURN = Fault(
    "it said more than was asked",
    "two lines printed for one read, or a log line on standard output",
    "print one line for each line read; logs go to standard error",
)
NOT_STOPPED = Fault(
    "it was told to stop and did not end with status 0",
    "a main loop that goes on after stop, or a thread that is not joined",
    "answer stop, flush, and return 0 from main",
)
OTHER_PROTOCOL = Fault(
    "it does not answer start as kvspec/1 does",
    "another protocol, or an engine that needs no start",
    'answer {"event":"start"} with its protocol, name and language',
)


class WireFault(TargetUnusable):
    """A conversation ended early; its text says at which step, and everything that is known."""

    def __init__(self, target: str, step: str, fault: Fault, detail: str, stderr: str) -> None:
        more = f" ({detail})" if detail else ""
        errors = f"its standard error ends: {stderr}" if stderr else "its standard error is empty"
        super().__init__(
            f"target {target}: at {step}: {fault.what}{more}; {errors}; "
            f"likely: {fault.causes}; hint: {fault.hint}"
        )
        self.target, self.step, self.fault = target, step, fault
        self.detail, self.stderr = detail, stderr

    def __reduce__(self) -> tuple[Any, ...]:
        return WireFault, (self.target, self.step, self.fault, self.detail, self.stderr)
