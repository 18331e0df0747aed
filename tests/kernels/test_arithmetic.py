"""The arithmetic of the kernel in C equals that in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest

from kvspec.kernels import arithmetic as py
from kvspec.kernels.host import HostMover, arithmetic, build, load, sources
from kvspec.kernels.layout import Layout, Segment, Storage

FUNCTIONS: dict[str, Callable[..., int]] = {
    name: function
    for name, function in inspect.getmembers(py, inspect.isfunction)
    if function.__module__ == py.__name__
}
WIDTHS = (1, 2, 4, 8, 16)
SMALL = {
    "size": (*range(40), *range(8180, 8200), *range(16380, 16390)),
    "length": (*range(40), 8191, 8192),
    "units": (*range(20), *range(120, 135), *range(250, 260)),
    "tile": range(12),
    "tiles": (*range(20), 2**31 - 2, 2**31 - 1, 2**31),
    "per_entry": range(1, 9),
    "block": range(20),
    "stride": range(40),
    "one": range(48),
    "other": range(48),
    "address": range(48),
    "width": WIDTHS,
    "head": range(16),
    "lane": range(128),
    "round": range(12),
}
"""The small domain, by parameter."""


def large(name: str, rng: Random) -> int:
    """A value of the large domain: what layout.py and plan.py let through."""
    if name == "width":
        return rng.choice(WIDTHS)
    most = {
        "lane": 7,
        "head": 4,
        "length": 13,
        "block": 32,
        "stride": 31,
        "tile": 33,
        "per_entry": 33,
        "one": 63,
        "other": 63,
        "address": 63,
        "tiles": 62,
    }.get(name, 46)
    return rng.randrange(2 ** rng.randint(0, most))


def defined(name: str, values: dict[str, int]) -> bool:
    """Whether the kernel may call the function with these values."""
    if name == "tile_length":
        return values["tile"] * py.TILE_BYTES < values["size"]
    if name == "body_units":
        return values["head"] <= values["length"]
    return values.get("per_entry", 1) > 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_c_equals_python_on_the_whole_small_domain(twin: Path, name: str) -> None:
    compare(twin, name, product(*(SMALL[p] for p in parameters(name))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_c_equals_python_at_random_on_the_large_domain(twin: Path, name: str) -> None:
    rng = Random(0)
    compare(twin, name, (tuple(large(p, rng) for p in parameters(name)) for _ in range(3000)))


def parameters(name: str) -> tuple[str, ...]:
    return tuple(inspect.signature(FUNCTIONS[name]).parameters)


def compare(twin: Path, name: str, domain: object) -> None:
    in_c, names = arithmetic(load(twin), name, len(parameters(name))), parameters(name)
    compared = 0
    for values in domain:  # type: ignore[attr-defined]
        if defined(name, dict(zip(names, values, strict=True))):
            assert in_c(*values) == FUNCTIONS[name](*values), (name, values)
            compared += 1
    assert compared > 0


def test_each_function_of_the_header_has_its_twin() -> None:
    text = sources()["arithmetic.h"]
    assert text.count("ARITHMETIC u64 ") == len(FUNCTIONS)
    for name in FUNCTIONS:
        assert f"ARITHMETIC u64 {name}(" in text


def test_the_constants_are_the_same() -> None:
    text = sources()["arithmetic.h"]
    for name in ("TILE_BYTES", "LANES", "MAX_GRID"):
        assert f"#define {name} {getattr(py, name)}\n" in text


def test_a_changed_operator_is_seen_by_the_comparison(tmp_path: Path, twin: Path) -> None:
    texts = sources()
    right = "{ return round * LANES + lane; }"
    texts["arithmetic.h"] = texts["arithmetic.h"].replace(right, "{ return round * LANES - lane; }")
    with pytest.raises(AssertionError):
        compare(build(texts, tmp_path), "unit_of", product(SMALL["lane"], SMALL["round"]))


def test_the_segment_of_each_tile_is_found(twin: Path) -> None:
    for sizes in product((1, 8192, 8193, 40000), repeat=3):
        at, segments = 0, []
        for size in sizes:
            segments.append(Segment(0, at, size, size))
            at += 2 * size
        mover = HostMover(Layout(2, (Storage(4096, at),), tuple(segments)), twin)
        firsts = mover.geometry.first_tiles
        for tile in range(firsts[-1]):
            due = max(n for n, first in enumerate(firsts[:-1]) if first <= tile)
            assert mover.twin.host_segment_of(mover.moves(0), tile) == due
