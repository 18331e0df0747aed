"""A process in which one module is the mutant's text, and everything else is as it stands."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

from .mutants import ROOT, Mutant

MEMORY = 4 * 2**30
"""Bytes of address space that a hunted process may use."""

WAITING = 20
"""How often its seconds of CPU may pass on the clock before a process hangs: others run too."""

MOST_SAID = 2**15
"""Characters that are passed on of what was seen: a pipe takes them at once."""

THIRD = ("hypothesis.stateful", "msgspec", "pytest", "rich.table", "typer")
"""What is loaded before forking, whatever is mutated."""

OURS = ("kvspec.scenarios", "kvspec.machine", "kvspec.replay", "kvspec.targets")
"""What is loaded before forking as well where none of it has to do with the mutated package."""


def preload(package: str) -> None:
    """Load what no mutant of the package changes, once for all processes forked from here."""
    modules = THIRD if package == "spec" else THIRD + OURS
    for module in modules:
        import_module(module)
    early = [name for name in sys.modules if name.startswith(f"kvspec.{package}")]
    assert not early, f"loaded before it could be mutated: {early}"


class _Finder(InspectLoader, MetaPathFinder):
    """Loads the mutated module from its text; `bare`: all of its package without assertions."""

    def __init__(self, mutant: Mutant | None, package: str, bare: bool) -> None:
        self.code: dict[str, CodeType] = dict(_bare_code(package)) if bare else {}
        if mutant is not None:
            text, optimize = mutant.text, 1 if bare else 0
            self.code[mutant.name] = compile(text, mutant.name, "exec", optimize=optimize)

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of ours."""
        return spec_from_loader(fullname, self) if fullname in self.code else None

    def get_source(self, fullname: str) -> None:
        """Nobody needs it."""

    def get_code(self, fullname: str) -> CodeType:
        """The module, compiled."""
        return self.code[fullname]


@cache
def _bare_code(package: str) -> Mapping[str, CodeType]:
    """The modules of a package, compiled without assertions."""
    paths = [path for path in (ROOT / package).glob("*.py") if path.stem != "__init__"]
    return {
        f"kvspec.{package}.{path.stem}": compile(
            path.read_text(encoding="utf-8"), str(path), "exec", optimize=1
        )
        for path in paths
    }


Look = Callable[[], str | None]
"""Runs checks; returns what they saw of the mutant, None where it looks sound."""


def look(mutant: Mutant | None, package: str, bare: bool, checks: Look, seconds: int) -> str | None:
    """Fork, put the mutant (None: nothing) in place and run checks: what they saw.

    An exception is seen, and so is a process that ends, needs more CPU than `seconds` or more
    memory than `MEMORY`.
    """
    if bare:
        _bare_code(package)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _live(mutant, package, bare, checks, seconds, theirs)
    os.close(theirs)
    try:
        said = _read(ours, seconds * WAITING)
    finally:
        os.close(ours)
    if said is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if said:
        return said[1:] or None
    if said is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return "it hangs"
    return "the process ended"


def _read(pipe: int, seconds: float) -> str | None:
    """All that comes, None when it takes too long. A full answer begins with a space."""
    until, said = time.monotonic() + seconds, b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(until - time.monotonic(), 0))
        if not ready:
            return None
        if not (part := os.read(pipe, 4096)):
            return said.decode()
        said += part


def _live(
    mutant: Mutant | None, package: str, bare: bool, checks: Look, seconds: int, pipe: int
) -> None:
    """The whole life of a hunted process."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        sys.modules["torch"] = None  # type: ignore[assignment]  # seconds to load; it moves bytes
        sys.meta_path.insert(0, _Finder(mutant, package, bare))
        try:
            seen = checks() or ""
        except BaseException as error:
            seen = f"{type(error).__name__}: {error}"
        os.write(pipe, f" {' '.join(seen.split())}"[:MOST_SAID].encode(errors="replace"))
    finally:
        os._exit(0)
