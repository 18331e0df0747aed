"""One child process, and the exchange of one line for one line within a time limit.

Standard input, output and error are pipes that never block: whoever waits reads all that comes, so
neither side can wait for the other for good, and what is kept of a flood is bounded.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

from kvspec.errors import printable
from kvspec.files import MAX_LINE

from . import faults as f

MOST_STDERR = 4096
"""Bytes of the end of standard error that are kept."""

SHOWN_STDERR = 400
"""Characters of it that an error shows."""

CHUNK = 1 << 16
"""Bytes read at a time."""

GOODBYE = 2.0
"""Seconds that a program gets to end by itself."""


class Child:
    """A running program. Every method that talks to it raises `WireFault`."""

    def __init__(self, target: str, command: Sequence[str]) -> None:
        self.target, self.command = target, list(command)
        self.step = "start"
        """What is being asked, in words, for errors."""
        self._read, self._stderr = b"", b""
        self.busy = False
        """Whether an answer is owed: a child left in this state is of no more use."""
        try:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise f.WireFault(target, "start", f.NOT_STARTED, why, "") from None
        pipes = self.process.stdin, self.process.stdout, self.process.stderr
        assert None not in pipes
        self._in, self._out, self._err = (p.fileno() for p in pipes if p is not None)
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)

    @property
    def usable(self) -> bool:
        """Whether another line can be sent."""
        return not self.busy and self.process.poll() is None

    def exchange(self, line: bytes, step: str, seconds: float) -> bytes:
        """Send a line and return the line that answers it, both without their ends."""
        self.step, self.busy = step, True
        self._refuse_more()
        deadline = time.monotonic() + seconds
        rest = memoryview(line + b"\n")
        with suppress(BlockingIOError, BrokenPipeError):
            rest = rest[os.write(self._in, rest) :]
        if rest:
            self._poll.register(self._in, select.POLLOUT)
        try:
            answer = self._converse(rest, deadline, seconds)
        finally:
            if rest:
                with suppress(KeyError):
                    self._poll.unregister(self._in)
        self.busy = False
        return answer

    def _converse(self, rest: memoryview, deadline: float, seconds: float) -> bytes:
        """Write what is left, read until the answer's line ends."""
        scanned = 0
        while True:
            end = self._read.find(b"\n", scanned)
            if end >= 0:
                answer, self._read = self._read[:end], self._read[end + 1 :]
                if self._read:
                    self._refuse_more()
                return answer.removesuffix(b"\r")
            scanned = len(self._read)
            if scanned > MAX_LINE:
                raise self.fault(f.FLOODED, f"more than {MAX_LINE} bytes in one line")
            left = deadline - time.monotonic()
            ready = self._poll.poll(max(left, 0) * 1000)
            if not ready and left <= 0:
                raise self._too_late(rest, seconds)
            for pipe, _ in ready:
                if pipe == self._in:
                    rest = self._write(rest)
                elif pipe == self._err:
                    self._drain_errors()
                else:
                    self._drain_output()

    def _write(self, rest: memoryview) -> memoryview:
        with suppress(BlockingIOError):
            try:
                rest = rest[os.write(self._in, rest) :]
            except BrokenPipeError:
                rest = rest[len(rest) :]  # whether it ended is seen where its output ends
        if not rest:
            self._poll.unregister(self._in)
        return rest

    def _drain_output(self) -> None:
        try:
            data = os.read(self._out, CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise self._ended()
        self._read += data

    def _drain_errors(self) -> None:
        try:
            data = os.read(self._err, CHUNK)
        except BlockingIOError:
            return
        if not data:
            with suppress(KeyError):
                self._poll.unregister(self._err)
        self._stderr = (self._stderr + data)[-MOST_STDERR:]

    def _refuse_more(self) -> None:
        """There must be nothing to read when nothing was asked."""
        if not self._read:
            with suppress(BlockingIOError):
                self._read = os.read(self._out, CHUNK)
        if self._read:
            self.busy = True
            raise self.fault(f.OUT_OF_TURN, show(self._read))

    # --- errors ---------------------------------------------------------------------------------

    def fault(self, fault: f.Fault, detail: str = "") -> f.WireFault:
        """The error, with the end of standard error; the program is ended."""
        self.busy = True
        self._last_words()
        self.kill()
        return f.WireFault(self.target, self.step, fault, detail, self.stderr)

    @property
    def stderr(self) -> str:
        """The end of standard error, in one printable line."""
        text = self._stderr.decode("utf-8", "replace").strip()
        cut = text if len(text) <= SHOWN_STDERR else f"...{text[-SHOWN_STDERR:]}"
        return " | ".join(map(printable, cut.split("\n")))

    def _ended(self) -> f.WireFault:
        """Standard output is at its end: did the program end too?"""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
        status = self.process.poll()
        if status is None:
            return self.fault(f.CLOSED)
        return self.fault(f.DIED, say_status(status))

    def _too_late(self, rest: memoryview, seconds: float) -> f.WireFault:
        if rest:
            return self.fault(f.NOT_READING, f"{seconds:g} seconds, {len(rest)} bytes left to read")
        if self._read:
            return self.fault(f.UNFINISHED, f"{seconds:g} seconds: {show(self._read)}")
        return self.fault(f.HUNG, f"{seconds:g} seconds")

    def _last_words(self) -> None:
        """Read what is on standard error, for a moment at the most."""
        until = time.monotonic() + 0.2
        with suppress(OSError):
            while time.monotonic() < until and select.select([self._err], [], [], 0.02)[0]:
                data = os.read(self._err, CHUNK)
                if not data:
                    break
                self._stderr = (self._stderr + data)[-MOST_STDERR:]

    # --- the end --------------------------------------------------------------------------------

    def wait(self) -> int | None:
        """Close its input, and the exit status that it ends with by itself, if it does in time."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(GOODBYE)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the program and what it started, and let go of the pipes."""
        if self.process.poll() is None:
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def say_status(status: int) -> str:
    """An exit status in words.

    >>> say_status(3), say_status(-11)
    ('exit status 3', 'killed by SIGSEGV')
    """
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def show(data: bytes) -> str:
    """The start of what was printed, in one printable line."""
    text = data[:80].decode("utf-8", "replace").split("\n")[0]
    return printable(text) + ("..." if len(data) > 80 else "")
