"""A process that runs cases on a twin built with sanitizers, and whoever talks to it.

    python -m tests.kernels.sanitized LIBRARY

reads pickled cases from standard input and writes what the storages held after. A sanitizer that
sees a fault ends the process with its report on standard error.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from kvspec.kernels.host import HostMover, sanitizer_environment

from .cases import Case, play

ROOT = Path(__file__).resolve().parents[2]


class SanitizerReport(AssertionError):
    """The process ended: what the sanitizer said."""


class Sanitized:
    """A process, until it is closed or a fault ends it. Raises `NoCompiler`."""

    def __init__(self, library: Path) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, "-m", "tests.kernels.sanitized", str(library)]
        environment = os.environ | sanitizer_environment()
        environment.pop("COVERAGE_PROCESS_CONFIG", None)  # slow, and nothing of ours runs there
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=ROOT,
            env=environment,
        )

    def play(self, case: Case) -> list[bytes]:
        """What the storages hold after the case. Raises `SanitizerReport`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            pickle.dump(case, self.process.stdin)
            self.process.stdin.flush()
            told: list[bytes] = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self.process.wait()
            self.errors.seek(0)
            text = self.errors.read().decode(errors="replace")
            raise SanitizerReport(text[:4000]) from None
        return told

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()


def _serve(library: Path) -> None:
    while True:
        try:
            case = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer = play(
            case,
            lambda layout, c: HostMover(layout, library, reversed=c.reversed, grid=c.grid),
        )
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
