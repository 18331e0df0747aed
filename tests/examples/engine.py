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
    headers = {name: text for name, text in texts.items() if name.endswith(".hpp")}
    objects = [
        _made(compiler, {**headers, name: texts[name]}, ("-c", name))
        for name in texts
        if name.endswith(".cpp")
    ]
    return _made(compiler, {}, tuple(map(str, objects)))


def _made(compiler: str, texts: dict[str, str], arguments: tuple[str, ...]) -> Path:
    """What the compiler makes of these files, kept for the next time."""
    key = repr((compiler, FLAGS, texts, arguments))
    folder = Path(tempfile.gettempdir()) / f"kvspec-engine-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    place = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.o"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            for name, text in texts.items():
                Path(made, name).write_text(text, "utf-8")
            command = [compiler, *FLAGS, "-o", "made", *arguments]
            done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            os.replace(Path(made, "made"), place)
    return place
