from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvspec.errors import BadInput
from kvspec.spec.types import MAX_TOKEN
from kvspec.workload import (
    MAX_LENGTH,
    NUM_IDS,
    SAMPLED,
    TRACE_BLOCK,
    Arrival,
    generated_workload,
    measure_reuse,
    read_workload,
    sampled_token,
)

GOOD = {"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]}


def write(folder: Path, *lines: object) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        list(read_workload(path))
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{path}")
    return text.removeprefix(f"{path}")


def test_requests_come_in_order(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, {**GOOD, "input_length": 513, "type": "passed over"})
    first, second = read_workload(path)
    assert first == Arrival(5, 600, 3, (7, 8))
    assert second.input_length == 513
    assert list(read_workload(path, limit=1)) == [first]


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"timestamp": -1}, "timestamp", "expected float >= 0.0, got -1"),
        ({"timestamp": "soon"}, "timestamp", "expected float, got str"),
        ({"timestamp": 4}, "timestamp", "expected at least the 5 of the line before, got 4"),
        ({"input_length": -4}, "input_length", "expected int >= 1, got -4"),
        ({"input_length": 0, "hash_ids": []}, "input_length", "expected int >= 1"),
        ({"input_length": MAX_LENGTH + 1}, "input_length", f"expected int <= {MAX_LENGTH}"),
        ({"input_length": 10**400}, "input_length", f"expected int <= {MAX_LENGTH}"),
        ({"input_length": 600.5}, "input_length", "expected int, got float"),
        ({"input_length": "600"}, "input_length", "expected int, got str"),
        ({"input_length": None}, "input_length", "expected int, got null"),
        ({"output_length": -1}, "output_length", "expected int >= 0"),
        ({"output_length": True}, "output_length", "expected int, got bool"),
        ({"hash_ids": [7]}, "hash_ids", "expected 2 ids for input_length 600"),
        ({"hash_ids": [7, 8, 9]}, "hash_ids", "got 3"),
        ({"hash_ids": "78"}, "hash_ids", "expected array, got str"),
        ({"hash_ids": [7, -1]}, "hash_ids[1]", "expected int >= 0"),
        (
            {"hash_ids": [7, NUM_IDS]},
            "hash_ids[1]",
            f"expected int <= {NUM_IDS - 1}, got {NUM_IDS}",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_line(
    tmp_path: Path, change: dict[str, object], field: str, expected: str
) -> None:
    text = refusal(write(tmp_path, GOOD, {**GOOD, **change}))
    assert text.startswith(f" line 2: {field}: ")
    assert expected in text


@pytest.mark.parametrize("field", GOOD)
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    line = {name: value for name, value in GOOD.items() if name != field}
    assert refusal(write(tmp_path, line)) == f" line 1: {field}: expected this field, it is missing"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", " line 1: expected a request, got an empty file"),
        (b"[1]\n", " line 1: expected an object with fields timestamp"),
        (b"nonsense\n", " line 1: expected one JSON object"),
        (b'{"timestamp": 5, "input_le', " line 1: expected one JSON object, got none: the line is"),
        (b'{"timestamp": "\xff"}\n', " line 1: expected UTF-8, got byte 0xff"),
        (b"\n", " line 1: expected one JSON object"),
        (b"[" * 100_000, " line 1: expected one JSON object"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, raw: bytes, expected: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(raw)
    assert refusal(path).startswith(expected)


def test_a_truncated_last_line_is_refused_after_the_good_ones(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, GOOD)
    path.write_bytes(path.read_bytes()[:-10])
    arrivals = read_workload(path)
    next(arrivals)
    with pytest.raises(BadInput, match="line 2: expected one JSON object, got none: the line is"):
        next(arrivals)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "absent.jsonl")


def test_equal_ids_mean_equal_tokens_and_no_others() -> None:
    prompt = Arrival(0, 1500, 1, (3, 0, NUM_IDS - 1)).prompt()
    assert len(prompt) == 1500
    assert prompt[:TRACE_BLOCK] == Arrival(0, TRACE_BLOCK, 1, (3,)).prompt()
    assert len(set(prompt)) == 1500
    assert max(prompt) < SAMPLED


def test_sampled_tokens_differ_between_requests_and_from_all_prompts() -> None:
    for position in (0, 1, 2000):
        tokens = [sampled_token(request, position) for request in range(1000)]
        assert len(set(tokens)) == 1000
        assert min(tokens) >= SAMPLED
        assert max(tokens) <= MAX_TOKEN


def test_a_generated_workload_depends_on_its_seed_alone() -> None:
    assert generated_workload(1) == generated_workload(1)
    assert generated_workload(1) != generated_workload(2)
    for arrival in generated_workload(1):
        assert -(-arrival.input_length // TRACE_BLOCK) == len(arrival.hash_ids)
        assert arrival.input_length >= 1


def test_the_bound_leaves_the_last_token_and_broken_blocks_out() -> None:
    workload = [
        Arrival(0, 1024, 1, (1, 2)),
        Arrival(1, 1024, 1, (1, 2)),  # the whole prompt is known, but its last token is computed
        Arrival(2, 1100, 1, (1, 2, 3)),
        Arrival(3, 1100, 1, (1, 2, 3)),  # the last id stands for 76 tokens
    ]
    reuse = measure_reuse(workload)
    assert (reuse.references, reuse.distinct) == (10, 3)
    assert reuse.repeated_tokens == 1024 + 1024 + 1100
    assert reuse.servable_tokens == 512 + 1024 + 1024
    assert measure_reuse(workload, 4).servable_tokens == 1020 + 1024 + 1096
