"""The mutants of a module: its text with one small thing changed, by mutmut's operators and ours.

Left alone is what no run depends on, by these rules:

- docstrings, annotations, decorators, imports, type aliases, `__slots__` and the like (`DECLARED`);
- assertions, the methods `check` and `_check` which are made of them, and `strict=` of `zip`, which
  asserts as well;
- what words a report: f-strings, the arguments of a raised exception, `WORDING` functions;
- the type that `cast` is told.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import libcst as cst
from libcst import matchers as m
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation.mutators import mutation_operators

ROOT = Path(__file__).resolve().parents[2]

PURE = ("types", "digests", "content", "lookup", "tables", "chunks", "registration", "state")
"""Modules of `spec/` whose functions take values and give a value. The others admit events, judge,
or hold the texts of the clauses."""

EDITING = {
    ("spec.state", "Draft"),
    *(("spec.registration", name) for name in ("register", "retract", "_publish", "_clause_for")),
    ("spec.registration", "_owe_the_rest"),
}
"""What is left out of them because it edits the draft of the judge's state."""

WORDING = ("describe", "_show", "__repr__", "__str__")
"""Functions that word a report."""

CHECKING = ("check", "_check")
"""Methods made of assertions."""

DECLARED = ("__slots__", "__all__", "FIELDS", "_FIELDS", "_MAPS")
"""Names of lists that declare."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `where` is the function, `before` and `after` are the lines that differ.

    These three and `nth` (of the changes in the function that read alike) stay the same when code
    elsewhere moves. `package` is "optimized" or "spec", `line` the first line changed.
    """

    package: str
    module: str
    where: str
    before: str
    after: str
    nth: int
    line: int
    operator: str
    text: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from all others."""
        return f"{self.package}.{self.module}.{self.where}", self.before, self.after, self.nth

    @property
    def name(self) -> str:
        """The module that it stands in for."""
        return f"kvspec.{self.package}.{self.module}"

    def __str__(self) -> str:
        return f"{self.package}/{self.module}.py:{self.line} {self.where}: {self.operator}"


def modules(package: str) -> tuple[str, ...]:
    """The names of the modules of a package that are mutated."""
    if package == "spec":
        return PURE
    names = (path.stem for path in sorted((ROOT / package).glob("*.py")))
    return tuple(name for name in names if name != "__init__")


@cache
def mutants_of(package: str, module: str) -> tuple[Mutant, ...]:
    """All mutants of a module, in the order of its text."""
    source = (ROOT / package / f"{module}.py").read_text(encoding="utf-8")
    return mutants_of_text(source, package, module)


def mutants_of_text(source: str, package: str, module: str) -> tuple[Mutant, ...]:
    """All mutants of a text that stands for a module."""
    seen, counts, found = {source}, Counter[tuple[str, str, str]](), list[Mutant]()
    for edit in _edits(source, f"{package}.{module}"):
        text = edit.apply(source)
        if text in seen:
            continue
        seen.add(text)
        line, before, after = _differing(source, text)
        told = edit.where, before, after
        counts[told] += 1
        found.append(Mutant(package, module, *told, counts[told], line, edit.operator, text))
    return tuple(found)


# --- operators ------------------------------------------------------------------------------------

Change = tuple[cst.CSTNode, cst.CSTNode]
"""A node, and what takes its place."""

TRUE, FALSE = cst.Name("True"), cst.Name("False")
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


def forced(node: cst.If | cst.While | cst.CompIf) -> Iterator[Change]:
    """A condition that always holds, or never does; a loop that is never entered."""
    if not isinstance(node, cst.While):
        yield node.test, TRUE
    yield node.test, FALSE


def dropped(node: cst.SimpleStatementLine) -> Iterator[Change]:
    """A statement whose only purpose is its effect is left out."""
    match node.body:
        case [cst.Expr(value=cst.Call()) | cst.AugAssign() | cst.Del() | cst.Raise() | cst.Break()]:
            yield node.body[0], cst.Pass()
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() | cst.Subscript()), *_])]:
            yield node.body[0], cst.Pass()


def swapped(node: cst.Call) -> Iterator[Change]:
    """`min` for `max`, `any` for `all`, and the other way round."""
    if isinstance(node.func, cst.Name) and node.func.value in SWAPPED:
        yield node.func, cst.Name(SWAPPED[node.func.value])


def operand(node: cst.BooleanOperation) -> Iterator[Change]:
    """One side of `and` or `or` alone."""
    for side in (node.left, node.right):
        bare = not side.lpar
        lpar, rpar = [cst.LeftParen()] if bare else [], [cst.RightParen()] if bare else []
        yield node, side.with_changes(lpar=[*lpar, *side.lpar], rpar=[*side.rpar, *rpar])


def one_less(node: cst.Integer) -> Iterator[Change]:
    """A number less one, where that is no negative one; one more is mutmut's."""
    if node.evaluated_value > 0:
        yield node, node.with_changes(value=str(node.evaluated_value - 1))


def _of_mutmut(operator: Callable[[Any], Iterable[cst.CSTNode]]) -> Operator:
    return lambda node: ((node, changed) for changed in operator(node))


Operator = Callable[[Any], Iterable[Change]]

OPERATORS: Sequence[tuple[str, type, Operator]] = [
    *(
        (make.__name__.removeprefix("operator_"), kind, _of_mutmut(make))
        for kind, make in mutation_operators
    ),
    ("forced", cst.If, forced),
    ("forced", cst.While, forced),
    ("forced", cst.CompIf, forced),
    ("dropped", cst.SimpleStatementLine, dropped),
    ("swapped", cst.Call, swapped),
    ("operand", cst.BooleanOperation, operand),
    ("one_less", cst.Integer, one_less),
]


# --- walking --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Edit:
    """Characters [start, end) of a source become `text`."""

    where: str
    start: int
    end: int
    text: str
    operator: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def _edits(source: str, module: str) -> list[_Edit]:
    wrapper = MetadataWrapper(cst.parse_module(source))
    finder = _Finder(wrapper, source, module)
    wrapper.module.visit(finder)
    return sorted(finder.found, key=lambda edit: (edit.start, edit.end))


class _Finder(cst.CSTVisitor):
    """Gathers the changes of all nodes that the rules do not leave alone."""

    def __init__(self, wrapper: MetadataWrapper, source: str, module: str) -> None:
        super().__init__()
        self.tree, self.module = wrapper.module, module
        self.spans = wrapper.resolve(WhitespaceInclusivePositionProvider)
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.names: list[str] = []
        self.skipped: set[cst.CSTNode] = set()
        self.found: list[_Edit] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.skipped or _left_alone(node, not self.names) or self._judges(node):
            self.skipped.add(node)
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.names.append(node.name.value)
        if isinstance(node, cst.Call) and m.matches(node.func, m.Name("cast")):
            self.skipped.add(node.args[0])
            return True
        for name, kind, make in OPERATORS:
            if isinstance(node, kind):
                for replaced, changed in make(node):
                    self._add(replaced, changed, name)
        return not isinstance(node, cst.Raise)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        named = isinstance(original_node, cst.FunctionDef | cst.ClassDef)
        if named and original_node not in self.skipped:
            self.names.pop()

    def _judges(self, node: cst.CSTNode) -> bool:
        """Whether the node is one of those that edit the judge's draft."""
        match node:
            case (
                cst.FunctionDef(name=cst.Name(value=name)) | cst.ClassDef(name=cst.Name(value=name))
            ):
                return not self.names and (self.module, name) in EDITING
        return False

    def _add(self, node: cst.CSTNode, changed: cst.CSTNode, operator: str) -> None:
        if isinstance(node, cst.Call) and _only_strict(node, changed):
            return
        span = self.spans[node]
        start = self.starts[span.start.line - 1] + span.start.column
        end = self.starts[span.end.line - 1] + span.end.column
        where, text = ".".join(self.names) or "-", self.tree.code_for_node(changed)
        self.found.append(_Edit(where, start, end, text, operator))


def _left_alone(node: cst.CSTNode, top: bool) -> bool:
    """Whether nothing in the node is changed. `top`: it stands in no function and no class."""
    match node:
        case cst.Annotation() | cst.Decorator() | cst.Import() | cst.ImportFrom() | cst.Assert():
            return True
        case cst.FormattedString():
            return True
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
            return True
        case cst.FunctionDef(name=cst.Name(value=name)):
            return name in WORDING + CHECKING
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            return name in DECLARED or (top and m.matches(value, TYPE))
        case cst.AnnAssign(target=cst.Name(value=name)):
            return name in DECLARED
        case cst.Call(func=cst.Name(value="refuse")):
            return True
        case cst.Arg(keyword=cst.Name(value="strict")):
            return True
    return False


TYPE = m.Subscript() | m.Call(func=m.Name("NewType")) | m.BinaryOperation(operator=m.BitOr())
"""What a type alias is assigned."""


def _only_strict(node: cst.Call, changed: cst.CSTNode) -> bool:
    """Whether nothing of a call of `zip` changed but `strict=`."""
    if not (m.matches(node.func, m.Name("zip")) and isinstance(changed, cst.Call)):
        return False
    old, new = ([a.value for a in c.args if a.keyword is None] for c in (node, changed))
    return len(old) == len(new) and all(map(operator.is_, old, new))


def _differing(before: str, after: str) -> tuple[int, str, str]:
    """The lines that are not the same in both, without their indentation; where they begin."""
    old, new = before.splitlines(), after.splitlines()
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    changed = _joined(old[head : len(old) - tail]), _joined(new[head : len(new) - tail])
    return head + 1, *changed


def _joined(lines: list[str]) -> str:
    return "\n".join(line.strip() for line in lines)
