"""Mutation by machine: which mutants are made, how one is looked at, and what is told of a hunt."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from .hunt import Result, Unsound, all_of, hunt_all
from .mutants import ROOT, Mutant, modules, mutants_of, mutants_of_text
from .report import Reason, Unusable, as_line, as_markdown, read_reasons, read_results, report
from .stages import Kill
from .world import look

SAMPLE = "layout"


def changes(text: str, module: str = "some") -> set[tuple[str, str]]:
    return {(m.before, m.after) for m in mutants_of_text(text, "spec", module)}


# --- the mutants ----------------------------------------------------------------------------------


def test_conditions_numbers_operators_and_statements_are_changed() -> None:
    text = "def f(a, b):\n    if a > b and b:\n        b.go()\n    return min(a, 2)\n"
    assert changes(text) >= {
        ("if a > b and b:", "if True:"),
        ("if a > b and b:", "if False:"),
        ("if a > b and b:", "if a >= b and b:"),
        ("if a > b and b:", "if a > b or b:"),
        ("if a > b and b:", "if (b):"),
        ("b.go()", "pass"),
        ("return min(a, 2)", "return max(a, 2)"),
        ("return min(a, 2)", "return min(a, 3)"),
        ("return min(a, 2)", "return min(a, 1)"),
    }


@pytest.mark.parametrize(
    "text",
    [
        '"""A module 1."""\n',
        'class A:\n    """A class 1."""\n    __slots__ = ("a", "b")\n',
        "def f(a: tuple[int, 1]) -> 2: ...\n",
        "def f(a):\n    assert a > 1, a + 1\n",
        "def check(self):\n    self.a = self.b + 1\n",
        "def describe(a):\n    return a + 1\n",
        "def f(a):\n    return f'{a + 1}'\n",
        "Id = NewType('Id', int)\nTable = tuple[Id, 1]\nSlot = A | B\n",
        "from a import b\nimport c\n",
        "@deco(1)\ndef f(): ...\n",
    ],
)
def test_what_no_run_depends_on_is_left_alone(text: str) -> None:
    assert changes(text) == set()


def test_what_is_asserted_or_worded_inside_a_statement_is_left_alone() -> None:
    text = "def f(a):\n    raise Bad('no' + 'thing', 1)\n"
    assert changes(text) == {("raise Bad('no' + 'thing', 1)", "pass")}
    text = "def f(a, b):\n    return zip(a, b, strict=True)\n"
    assert not any(after.startswith("return zip(a, b") for _, after in changes(text))
    assert ("return zip(a, b, strict=True)", "return zip(a, strict=True)") in changes(text)
    text = "def f(a):\n    return cast(T, a + 1)\n"
    assert all("cast(T, " in after for _, after in changes(text))


def test_what_edits_the_judge_s_draft_is_left_out() -> None:
    text = "def register(a):\n    return a + 1\n"
    assert changes(text, "registration") == set()
    assert changes(text) != set()


def test_changes_that_read_alike_are_told_apart_by_their_number() -> None:
    text = "def f(a):\n    a.go()\n    b = 0\n    a.go()\n"
    alike = [m for m in mutants_of_text(text, "spec", "some") if m.after == "pass"]
    assert [(m.line, m.nth) for m in alike] == [(2, 1), (4, 2)]
    assert len({m.key for m in alike}) == 2


@pytest.mark.parametrize(("package", "module"), [("optimized", SAMPLE), ("spec", "chunks")])
def test_each_mutant_of_a_module_is_python_and_another_program(package: str, module: str) -> None:
    mutants = mutants_of(package, module)
    source = (ROOT / package / f"{module}.py").read_text()
    programs = {ast.dump(ast.parse(source)), *(ast.dump(ast.parse(m.text)) for m in mutants)}
    assert len(programs) == len(mutants) + 1
    assert len({m.key for m in mutants}) == len(mutants)


# --- the hunt -------------------------------------------------------------------------------------


def spin() -> str | None:
    while True:
        time.monotonic()


def leave() -> str | None:
    sys.exit(0)


def sound() -> str | None:
    return None


def asks_for_a_fifth() -> str | None:
    import kvspec.optimized.layout as mutated

    return str(vars(mutated).get("fifth"))


@pytest.mark.parametrize(
    ("checks", "seen"),
    [(sound, None), (spin, "it hangs"), (leave, "SystemExit: 0"), (lambda: 1 / 0, "ZeroDivision")],
)
def test_a_look_tells_what_was_seen(checks: Callable[[], str | None], seen: str | None) -> None:
    told = look(None, "optimized", False, checks, 1)
    assert told == seen or (seen and told and told.startswith(seen))


def test_a_sample_is_hunted_and_each_survivor_has_its_reason() -> None:
    stages = "import", "scenarios", "structures"
    results = hunt_all("optimized", all_of("optimized", [SAMPLE]), 2, stages=stages)
    assert report(results, read_reasons()).complaints == []
    assert "scenarios" in {result.kill.stage for result in results if result.kill}


def test_a_stage_that_sees_something_where_nothing_is_mutated_is_an_error() -> None:
    with pytest.raises(Unsound, match="nonesuch of optimized sees, with nothing mutated: no stage"):
        hunt_all("optimized", all_of("optimized", [SAMPLE])[:1], 1, stages=["nonesuch"])


# --- reasons and results --------------------------------------------------------------------------


def test_every_reason_is_of_a_mutant_that_there_is() -> None:
    keys = {m.key for package in ("optimized", "spec") for m in all_of(package)}
    assert [key for key in read_reasons() if key not in keys] == []


def a_mutant(after: str = "pass") -> Mutant:
    return Mutant("spec", "chunks", "f", "a", after, 1, 7, "dropped", "")


def test_a_report_complains_of_survivors_without_and_of_reasons_with_nothing_to_explain() -> None:
    alive, dead, gone = a_mutant("b"), a_mutant("c"), a_mutant("d")
    reason = Reason("equal", "it is")
    killed = [Result(replace(dead, nth=n), Kill("rules", "test_f")) for n in range(1, 30)]
    results = [Result(alive, None), *killed]
    assert report(results, {alive.key: reason}).complaints == []
    told = report(results, {dead.key: reason, gone.key: reason}).complaints
    assert [line.partition(" spec/")[0] for line in told[:2]] == [
        "no reason is given why",
        "explained, but rules kills it:",
    ]
    assert told[2].startswith("explained, but there is no such mutant:")
    assert "0.0% of the mutants are killed" in report([Result(alive, None)], {}).complaints[-1]


def test_the_page_lists_survivors_and_their_reasons() -> None:
    results = [Result(a_mutant("b | c"), None), Result(a_mutant(), Kill("rules", "test_f"))]
    page = as_markdown(report(results, {results[0].mutant.key: Reason("equal", "why")}), "x")
    assert "| spec/chunks.py | 2 | 1 | 50.0% | 1 | 1 |" in page
    assert "| spec/chunks.py `f` | `a` | `b \\| c` | equal | why |" in page


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[survivor]]\nwhere = 'a'", "an entry lacks changes, kind, why"),
        ("[[survivor", "Expected"),
        ("[[survivor]]\nwhere='a'\nkind='odd'\nwhy='b'\nchanges=[]", "kind must be one of equal"),
        (
            "[[survivor]]\nwhere='a'\nkind='equal'\nwhy='b'\nchanges=[['x','y'],['x','y']]",
            "explained twice",
        ),
    ],
)
def test_bad_reasons_are_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "explained.toml"
    path.write_text(text)
    with pytest.raises(Unusable, match=told):
        read_reasons(path)


def test_results_are_read_again_unless_they_are_of_other_code(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results = [Result(a_mutant("b"), None), Result(a_mutant(), Kill("rules", "test_f"))]
    path.write_text("".join(map(as_line, results)))
    assert read_results(path) == {result.mutant.key: result.kill for result in results}
    path.write_text(path.read_text().replace('"code": "', '"code": "x'))
    with pytest.raises(Unusable, match="line 1: of other code"):
        read_results(path)
    path.write_text("{}\n")
    with pytest.raises(Unusable, match="line 1: no result of a mutant"):
        read_results(path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--module", "chunks"], "--module chunks: expected --package and a module"),
        (["--package", "spec", "--module", "judge"], "--module judge: expected"),
        (["--package", "kernels"], "argument --package: invalid choice: 'kernels'"),
        (["--markdown", "/nonesuch/a.md"], "--markdown"),
        (["--workers", "-1"], "--workers"),
    ],
)
def test_the_command_refuses_bad_input_in_one_line(arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "tests.mutation", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"mutation: {told}")


def test_modules_are_those_that_there_are() -> None:
    assert set(modules("spec")) <= {path.stem for path in (ROOT / "spec").glob("*.py")}
    assert "manager" in modules("optimized")
