"""Imports point one way, and spec/ needs nothing but Python (design section 6).

import-linter says the same of the import graph; here the source is read, so that an import inside a
function, an import of `kvspec` itself and a third-party import are seen too.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAY_IMPORT = {
    "spec": ("kvspec.spec",),
    "reference": ("kvspec.reference", "kvspec.spec"),
    "optimized": ("kvspec.optimized", "kvspec.spec"),
    "kernels": ("kvspec.kernels",),
}


def imported_names(package: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the full dotted name of everything that a module of `package` imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -(node.level - 1) or None] if node.level else []
            for alias in node.names:
                yield node.lineno, ".".join([*above, *filter(None, [node.module]), alias.name])


def package_of(path: Path) -> str:
    return ".".join(["kvspec", *path.relative_to(ROOT).parent.parts])


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def complaints(package: str, source: str) -> list[str]:
    """Say of each import in a module of `package` what is wrong with it."""
    folder = package.split(".")[1]
    found = []
    for line, name in imported_names(package, source):
        top = name.split(".")[0]
        if top in MAY_IMPORT:
            found.append(f"{line}: {name} is a second copy, use kvspec.{name}")
        elif top == "kvspec" and not is_within(name, MAY_IMPORT[folder]):
            found.append(f"{line}: {name}, but {folder}/ imports only {MAY_IMPORT[folder]}")
        elif folder == "spec" and top != "kvspec" and top not in sys.stdlib_module_names:
            found.append(f"{line}: {name}, but spec/ imports only the standard library")
    return found


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_what_the_design_lets_it(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, f"{folder}/ holds no module"
    found = [
        f"{path.relative_to(ROOT)}:{complaint}"
        for path in files
        for complaint in complaints(package_of(path), path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("spec", "import msgspec"),
        ("spec", "from kvspec.reference import manager"),
        ("spec", "def f():\n    from kvspec import targets"),
        ("spec", "import kvspec"),
        ("spec", "from kvspec.speculation import x"),
        ("spec", "from .. import targets"),
        ("reference", "from ..optimized.manager import Manager"),
        ("spec", "import spec.types"),
        ("reference", "import kvspec.optimized.manager"),
        ("optimized", "from kvspec import reference"),
        ("optimized", "from kvspec.harness import run"),
        ("kernels", "from kvspec.spec.types import BlockId"),
    ],
)
def test_an_import_that_is_not_allowed_is_seen(folder: str, source: str) -> None:
    assert len(complaints(f"kvspec.{folder}", source)) == 1


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("spec", "from __future__ import annotations\nimport collections.abc"),
        ("spec", "from kvspec.spec.types import BlockId"),
        ("spec", "from .types import BlockId\nfrom . import types"),
        ("reference", "from ..spec.types import BlockId"),
        ("reference", "import torch\nfrom kvspec.spec import types\nfrom kvspec import spec"),
        ("kernels", "from kvspec.kernels import plan\nimport cuda.core"),
    ],
)
def test_an_import_that_is_allowed_is_left_alone(folder: str, source: str) -> None:
    assert complaints(f"kvspec.{folder}", source) == []


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_the_package_is_a_relative_link_to_the_folder_at_the_top(folder: str) -> None:
    link = ROOT / "kvspec" / folder
    assert link.is_symlink(), f"{link} must be a symlink: git config core.symlinks true, then clone"
    assert link.readlink() == Path("..", folder)
