"""z3 proves what the C arithmetic comes to, from the text of arithmetic.h.

Each function is read twice: over 64-bit words, as it runs, and over 128-bit words, in which nothing
within the bounds can wrap, so that they stand for the whole numbers. The bounds are those of
layout.py and plan.py: segments of at most 2^46 bytes, ids below 2^32, addresses below 2^63.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import z3
from pycparser import CParser, c_ast

from kvspec.kernels import arithmetic as py
from kvspec.kernels.host import sources
from kvspec.kernels.layout import MAX_ADDRESS, MAX_BLOCKS, MAX_POOL_BYTES
from kvspec.kernels.plan import MAX_TILES

TILE, LANES = py.TILE_BYTES, py.LANES
WIDTHS = (1, 2, 4, 8, 16)
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": z3.UDiv,
    "%": z3.URem,
    "<": z3.ULT,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@dataclass
class Reading:
    """The functions of the header over words of so many bits."""

    text: str
    bits: int
    functions: dict[str, c_ast.FuncDef] = field(init=False)
    constants: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        defined = re.findall(r"#define (\w+) (\d+)\n", self.text)
        self.constants = {name: int(value) for name, value in defined}
        plain = re.sub(r"//[^\n]*|#define[^\n]*", "", self.text).replace("ARITHMETIC ", "")
        tree = CParser().parse(f"typedef unsigned long u64;\n{plain}")
        found = [part for part in tree.ext if isinstance(part, c_ast.FuncDef)]
        self.functions = {part.decl.name: part for part in found}

    def __call__(self, name: str, *arguments: Any) -> Any:
        function = self.functions[name]
        (body,) = function.body.block_items
        assert isinstance(body, c_ast.Return), f"{name}: expected one return"
        names = [parameter.name for parameter in function.decl.type.args.params]
        return self.value(body.expr, dict(zip(names, arguments, strict=True)))

    def value(self, node: c_ast.Node, known: dict[str, Any]) -> Any:
        match node:
            case c_ast.Constant(value=text):
                return z3.BitVecVal(int(text), self.bits)
            case c_ast.ID(name=name) if name in known:
                return known[name]
            case c_ast.ID(name=name):
                return z3.BitVecVal(self.constants[name], self.bits)
            case c_ast.BinaryOp(op=op, left=left, right=right):
                return OPERATORS[op](self.value(left, known), self.value(right, known))
            case c_ast.TernaryOp(cond=condition, iftrue=yes, iffalse=no):
                parts = (self.value(part, known) for part in (condition, yes, no))
                return z3.If(*parts)
            case c_ast.FuncCall(name=called, args=given):
                return self(called.name, *(self.value(part, known) for part in given.exprs))
        raise AssertionError(f"arithmetic.h: this proof does not know {type(node).__name__}")


def word(name: str) -> Any:
    return z3.BitVec(name, 64)


def wide(value: Any) -> Any:
    return z3.ZeroExt(64, value)


def small(name: str, bits: int) -> Any:
    """A word whose upper bits are zero."""
    return z3.ZeroExt(64 - bits, z3.BitVec(name, bits)) if bits else z3.BitVecVal(0, 64)


def proved(goal: Any, *given: Any) -> bool:
    """Whether no values within what is given refute the goal: the negation is `unsat`."""
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", 60_000)
    solver.add(*given, z3.Not(goal))
    answer = solver.check()
    assert answer != z3.unknown, "z3 gave no answer in time"
    return bool(answer == z3.unsat)


def at_most(value: Any, bound: int) -> Any:
    return z3.ULE(value, bound)


Proof = Iterator[tuple[str, bool]]


def no_overflow(text: str) -> Proof:
    """Each function over 64 bits is the function over the whole numbers."""
    narrow, whole = Reading(text, 64), Reading(text, 128)

    def same(name: str, *arguments: Any, given: tuple[Any, ...] = ()) -> tuple[str, bool]:
        goal = wide(narrow(name, *arguments)) == whole(name, *map(wide, arguments))
        return f"{name} does not overflow", proved(goal, *given)

    size, tile, length = small("size", 47), small("tile", 34), small("length", 14)
    in_pool = at_most(size, MAX_POOL_BYTES)
    in_segment = z3.ULT(tile * TILE, size)
    yield same("tiles_of", size, given=(in_pool,))
    yield same("tile_start", tile)
    yield same("tile_length", tile, size, given=(in_pool, in_segment))
    tiles, per_entry = small("tiles", 63), small("per_entry", 34)
    yield same("grid_of", tiles, given=(at_most(tiles, MAX_TILES),))
    one, other = word("one"), word("other")
    below = (z3.ULT(one, MAX_ADDRESS), z3.ULT(other, MAX_ADDRESS))
    yield same("common_width", one, other, given=below)
    head, units, lane = small("head", 14), small("units", 14), small("lane", 7)
    for width in WIDTHS:
        unit = z3.BitVecVal(width, 64)
        yield same("head_length", one, unit, length, given=(below[0], at_most(length, TILE)))
        yield same("body_units", length, head, unit, given=(z3.ULE(head, length),))
        yield same("tail_start", head, units, unit, given=(at_most(units, TILE),))
    yield same("rounds_of", units, given=(at_most(units, TILE),))
    yield same("unit_of", lane, small("round", 14))
    # A product of at most 2^46 has factors whose lengths in bits add up to at most 48: all cases.
    for bits in range(MAX_BLOCKS.bit_length()):
        yield same("byte_offset", small("block", bits), small("stride", 48 - bits), tile)
    # z3 is slow on a division by a variable. It needs no search: the quotient and the remainder of
    # two words are those of the numbers, so it is enough that the functions are just that.
    quotient, rest = z3.UDiv(tiles, per_entry), z3.URem(tiles, per_entry)
    yield "entry_of is a quotient", narrow("entry_of", tiles, per_entry).eq(quotient)
    yield "tile_in_entry is a remainder", narrow("tile_in_entry", tiles, per_entry).eq(rest)


def tiles_cover(text: str) -> Proof:
    """A byte of a segment is in the tile of its number over TILE_BYTES, and in no other."""
    c = Reading(text, 64)
    size, tile, byte = small("size", 47), small("tile", 34), small("byte", 47)
    in_pool = at_most(size, MAX_POOL_BYTES)
    start = c("tile_start", tile)
    is_tile = z3.ULT(tile, c("tiles_of", size))
    inside = z3.And(
        is_tile, z3.ULE(start, byte), z3.ULT(byte, start + c("tile_length", tile, size))
    )
    due = z3.And(z3.ULT(byte, size), tile == z3.UDiv(byte, z3.BitVecVal(TILE, 64)))
    yield "each byte is in exactly one tile, no other is", proved(inside == due, in_pool)


def parts_cover(text: str) -> Proof:
    """Head, units and tail are each byte of a tile once; units are aligned at both ends."""
    c = Reading(text, 64)
    length, source, target = small("length", 14), word("source"), word("target")
    below = (
        at_most(length, TILE),
        z3.ULT(source, MAX_ADDRESS),
        z3.ULT(target, MAX_ADDRESS),
    )
    found = c("common_width", source, target)
    yield "the width is one of five", proved(z3.Or(*(found == width for width in WIDTHS)), *below)
    for width in WIDTHS:
        unit = z3.BitVecVal(width, 64)
        head = c("head_length", target, unit, length)
        units = c("body_units", length, head, unit)
        tail = c("tail_start", head, units, unit)
        given = (*below, found == width)
        goal = z3.And(
            z3.ULE(head, length),
            tail == head + units * width,
            z3.ULE(tail, length),
            z3.ULT(length - tail, LANES),
            z3.ULT(head, LANES),
            z3.ULE(units, TILE // width),
        )
        yield f"width {width}: head, units and tail are the tile", proved(goal, *given)
        aligned = z3.And(
            z3.URem(target + head, unit) == 0,
            z3.URem(source + head, unit) == 0,
        )
        goal = z3.Implies(units != 0, aligned)
        yield f"width {width}: units are aligned at both ends", proved(goal, *given)


def lanes_cover(text: str) -> Proof:
    """A unit is moved by exactly one lane, in exactly one round, and the rounds suffice."""
    c = Reading(text, 64)
    units, unit, lane, turn = (small(n, 14) for n in ("units", "unit", "lane", "round"))
    given = (at_most(units, TILE), z3.ULT(unit, units), z3.ULT(lane, LANES))
    moves = z3.And(z3.ULT(turn, c("rounds_of", units)), c("unit_of", lane, turn) == unit)
    lanes = z3.BitVecVal(LANES, 64)
    due = z3.And(lane == z3.URem(unit, lanes), turn == z3.UDiv(unit, lanes))
    yield "each unit has one lane and one round", proved(moves == due, *given)


def grids_cover(text: str) -> Proof:
    """A launch has a thread block for the first tile whenever there is a tile, and fits CUDA."""
    c = Reading(text, 64)
    tiles = small("tiles", 63)
    grid = c("grid_of", tiles)
    goal = z3.And(z3.ULE(grid, tiles), z3.ULE(grid, 2**31 - 1), (grid == 0) == (tiles == 0))
    yield "the grid fits", proved(goal, at_most(tiles, MAX_TILES))
    # tile += grid, at most MAX_TILES + MAX_GRID, stays a 64-bit number
    step = wide(tiles) + wide(grid) == wide(tiles + grid)
    yield "the next tile does not overflow", proved(step, at_most(tiles, MAX_TILES))


PROOFS = [no_overflow, tiles_cover, parts_cover, lanes_cover, grids_cover]


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_no_value_within_the_bounds_refutes(proof: Callable[[str], Proof]) -> None:
    results = list(proof(sources()["arithmetic.h"]))
    assert results
    assert [name for name, holds in results if not holds] == []


CHANGES = [
    (tiles_cover, "size % TILE_BYTES != 0 ? 1 : 0", "size % TILE_BYTES == 0 ? 1 : 0"),
    (tiles_cover, "{ return tile * TILE_BYTES; }", "{ return tile + TILE_BYTES; }"),
    (tiles_cover, "? size - tile_start(tile) : TILE", "? size + tile_start(tile) : TILE"),
    (parts_cover, "one % 16 == other % 16", "one % 16 != other % 16"),
    (parts_cover, "one % 8 == other % 8", "one % 4 == other % 8"),
    (parts_cover, "(width - address % width) % width <", "(width + address % width) % width <"),
    (parts_cover, "return (length - head) / width", "return (length + head) / width"),
    (parts_cover, "return head + units * width", "return head - units * width"),
    (lanes_cover, "return round * LANES + lane", "return round * LANES - lane"),
    (lanes_cover, "return units / LANES + (units", "return units / LANES - (units"),
    (grids_cover, "return tiles < MAX_GRID", "return MAX_GRID < tiles"),
    (no_overflow, "return block * stride + tile", "return block * stride * stride + tile"),
]
"""One operator changed, and the proof that no longer holds."""


@pytest.mark.parametrize(("proof", "right", "wrong"), CHANGES)
def test_a_changed_operator_makes_a_proof_fail(
    proof: Callable[[str], Proof], right: str, wrong: str
) -> None:
    text = sources()["arithmetic.h"]
    assert right in text
    changed = text.replace(right, wrong)
    assert not all(holds for _, holds in proof(changed))
