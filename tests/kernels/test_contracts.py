"""CrossHair confirms every contract of arithmetic.py: no counterexample exists within `pre:`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from crosshair.core_and_libs import analyze_function, run_checkables
from crosshair.options import AnalysisOptionSet
from crosshair.statespace import MessageType

from kvspec.kernels import arithmetic
from tests.kernels.test_arithmetic import FUNCTIONS

OPTIONS = AnalysisOptionSet(
    per_condition_timeout=60.0, per_path_timeout=20.0, report_all=True, max_iterations=2000
)


def verdicts(function: object) -> list[MessageType]:
    return [
        message.state
        for message in run_checkables(analyze_function(function, OPTIONS))  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_contract_is_confirmed(name: str) -> None:
    found = verdicts(FUNCTIONS[name])
    posts = (FUNCTIONS[name].__doc__ or "").count("post:")
    assert found == [MessageType.CONFIRMED] * posts


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
    assert MessageType.POST_FAIL in verdicts(module.body_units)
