"""Running the command, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from kvspec.cli import app

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a command."""

    status: int
    stdout: str
    stderr: str

    @property
    def verdict(self) -> str:
        """The last line on standard output."""
        return self.stdout.rstrip("\n").rpartition("\n")[2]

    def is_refused(self) -> bool:
        """Whether it ended with 2, a verdict and one line of error, and no traceback."""
        reason = self.verdict.removeprefix("unusable: ")
        assert self.status == 2, self
        assert self.stderr == f"kvspec: {reason}\n", self
        return True


def run(*arguments: str | Path) -> Ran:
    """Run `kvspec` with these arguments in this process."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return Ran(result.exit_code, result.stdout, result.stderr)


def start(*arguments: str | Path, cwd: Path | None = None, module: str = "kvspec.cli") -> Ran:
    """Run `python -m module` with these arguments in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd or ROOT)
    return Ran(done.returncode, done.stdout, done.stderr)
