"""The contracts of arithmetic.py are among the conditions, and can fail.

tests/rules/test_conditions.py has CrossHair confirm them.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from kvspec.conditions import CONDITIONS
from kvspec.conditions.confirm import examine, posts
from kvspec.kernels import arithmetic
from tests.kernels.test_arithmetic import FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_contract(name: str) -> None:
    assert CONDITIONS[f"kernels.{name}"].function is FUNCTIONS[name]
    assert posts(FUNCTIONS[name]) > 0


def test_a_changed_operator_is_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(arithmetic.__file__).read_text(encoding="utf-8")
    right = "return (length - head) // width"
    assert right in text
    changed = tmp_path / "changed_arithmetic.py"
    changed.write_text(text.replace(right, "return (length + head) // width"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("changed_arithmetic", changed)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    assert "POST_FAIL" in {answer.state for answer in examine(module.body_units)}
