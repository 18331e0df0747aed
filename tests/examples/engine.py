"""Builds of the example engine in C++, whole or with planted faults."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.cli.run import ROOT

SOURCES = ROOT / "examples" / "cpp_engine"
FLAGS = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror")

FAULTS = {
    "EVICT.TAKEN": ("  unpublish(block);\n  refs_[block] = 1;", "  refs_[block] = 1;"),
    "COW.HITTER": ("table.back() != NULL_BLOCK) {", "table.back() == FRESH) {"),
    "FREE.TAIL": ("table.rbegin(), table.rend()", "table.begin(), table.end()"),
}
"""By the clause that each breaks: what stands in cache.cpp, and what stands there instead."""


def build(*faults: str) -> Path:
    """The program, built once for each text; skips the test where there is no compiler."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("no C++ compiler: the example engine cannot be built")
    texts = {path.name: path.read_text("utf-8") for path in sorted(SOURCES.glob("*.?pp"))}
    for clause in faults:
        right, wrong = FAULTS[clause]
        assert texts["cache.cpp"].count(right) == 1, clause
        texts["cache.cpp"] = texts["cache.cpp"].replace(right, wrong)
    digest = hashlib.sha256(repr((compiler, FLAGS, texts)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"kvspec-engine-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    program = folder / f"engine-{digest}"
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            _compile(compiler, texts, Path(name), program)
    return program


def _compile(compiler: str, texts: dict[str, str], made: Path, program: Path) -> None:
    for name, text in texts.items():
        (made / name).write_text(text, "utf-8")
    sources = [str(made / name) for name in texts if name.endswith(".cpp")]
    command = [compiler, *FLAGS, "-o", str(made / "engine"), *sources]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    os.replace(made / "engine", program)
