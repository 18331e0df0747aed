"""Serve a target in Python over standard input and output: `python -m kvspec.wire.serve TARGET`.

The other end of `kvspec.wire.engine`: for managers in a Python environment of their own, and an
example of the protocol in one page. Questions are read strictly; a line that is none is answered
with an error, and the conversation goes on.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec

from kvspec.codec import event_from_json, observation_to_json
from kvspec.errors import BadInput, ConfigDeclined, EventUnsupported, KvspecError, TargetHung
from kvspec.failure import find_subject
from kvspec.files import MAX_LINE
from kvspec.recorded import probe_target
from kvspec.report import VERSION
from kvspec.spec import events as ev
from kvspec.spec.types import Config
from kvspec.targets import Factory, Target, TargetFault

from . import messages as m


class Server:
    """One conversation: what it is asked, it answers with one object."""

    def __init__(self, name: str, factory: Factory, capabilities: ev.Capabilities) -> None:
        self.name, self.factory, self.capabilities = name, factory, capabilities
        self.target: Target | None = None
        self.started = self.stopped = False

    def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to a line. Never raises but for what ends the process."""
        try:
            line.decode()
            data = msgspec.json.decode(line)
        except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
            return _error(f"expected one JSON object a line, got none: {error}")
        name = data.get("event") if isinstance(data, dict) else None
        try:
            if name in ("start", "stop"):
                return self._own(msgspec.convert(data, m.Start | m.Stop))
            event = event_from_json(data, "line")
            if not self.started:
                return _error("expected start first: it says which protocol is spoken")
            return self._ask(event)
        except (BadInput, msgspec.ValidationError) as error:
            return _error(str(error))

    def _own(self, asked: m.Start | m.Stop) -> dict[str, Any]:
        if isinstance(asked, m.Stop):
            self.stopped = True
            return {"result": {}}
        self.started = True
        can = self.capabilities
        shown = m.Shown(can.shows, can.lacks)
        started = m.Started(m.PROTOCOL, can.name, "python", can.version, "", shown)
        return {"result": msgspec.to_builtins(started)}

    def _ask(self, event: ev.Event) -> dict[str, Any]:
        try:
            if isinstance(event, Config):
                self.target = Target(self.name, self.factory, event)
                here = self.target.capabilities
                return {"result": {"shows": here.shows, "lacks": here.lacks}}
            if self.target is None:
                return _error("expected configure before any other event")
            if missing := self.target.lacks(event):
                return {"unsupported": f"lacks {missing}"}
            observed = self.target.ask(event)
            if isinstance(observed, ev.Rejection):
                return {"rejected": observed.reason[: m.MOST_SAID]}
            return {"result": observation_to_json(observed)}
        except (ConfigDeclined, EventUnsupported) as declined:
            return {"unsupported": str(declined)[: m.MOST_SAID]}
        except (KvspecError, TargetFault, TargetHung, msgspec.ValidationError) as error:
            return _error(str(error))


def _error(text: str) -> dict[str, Any]:
    return {"error": text[: m.MOST_SAID]}


def serve(server: Server, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer lines until `stop`, or until nobody asks any more."""
    while not server.stopped and (line := questions.readline(MAX_LINE + 1)):
        if len(line) > MAX_LINE:
            while not line.endswith(b"\n") and (line := questions.readline(MAX_LINE)):
                pass
            answer = _error(f"expected at most {MAX_LINE} bytes a line, got more")
        else:
            answer = server.answer(line)
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()


def main(arguments: list[str]) -> int:
    """Serve the target that the one argument names."""
    if len(arguments) != 1:
        print("usage: python -m kvspec.wire.serve TARGET", file=sys.stderr)
        return 2
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what the target prints is no answer
        try:
            subject = find_subject(arguments[0])
            probe = probe_target(subject)
        except (KvspecError, TargetHung) as error:
            print(f"kvspec {VERSION}: {error}", file=sys.stderr)
            return 2
        with suppress(BrokenPipeError, KeyboardInterrupt):
            serve(
                Server(subject.target, subject.factory, probe.capabilities),
                sys.stdin.buffer,
                answers,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
