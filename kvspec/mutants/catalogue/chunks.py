"""Faults of CHUNK: the scheduler's arithmetic (design 4.10)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

C = "chunk_rule"
CACHEABLE = "cacheable = num_tokens // block_size * block_size - (block_size if eagle else 0)"

MUTANTS = [
    Mutant(
        "chunk-stands-still",
        "CHUNK.ADVANCE",
        "a chunk whose block fits no step does not advance",
        (Edit(C, "return end if size > largest else start", "return start"),),
        ("G4",),
    ),
    Mutant(
        "chunk-cap-ignored",
        "CHUNK.ADVANCE",
        "the long-prefill cap does not count where a block fits no step",
        (Edit(C, "largest = min(budget, cap) if cap else budget", "largest = budget"),),
        ("G4",),
    ),
    Mutant(
        "chunk-not-waiting",
        "CHUNK.END",
        "a chunk that could wait for room for a block ends inside it",
        (Edit(C, "return end if size > largest else start", "return end"),),
        ("C2",),
    ),
    Mutant(
        "chunk-off-grid",
        "CHUNK.END",
        "a chunk's end is not brought down to the block grid",
        (Edit(C, "aligned = end // size * size", "aligned = end"),),
        ("C2",),
    ),
    Mutant(
        "chunk-resumed-off-grid",
        "CHUNK.END",
        "a chunk that starts inside a block does not stop at the block's end",
        (Edit(C, "    if start % block_size:\n", "    if False:\n"),),
        ("C2",),
    ),
    Mutant(
        "chunk-resumed-free",
        "CHUNK.END",
        "a resumed request's known tokens are not clipped behind the prompt's block",
        (
            Edit(
                C,
                "settled = max(num_prompt_tokens, num_tokens - 1)",
                "settled = num_prompt_tokens // block_size * block_size",
            ),
        ),
        ("C2",),
    ),
    Mutant(
        "chunk-no-cacheable",
        "CHUNK.END",
        "a chunk runs past the last block end that can be cached",
        (Edit(C, "    end = stop_at(cacheable, start, end)\n", ""),),
        ("C2",),
    ),
    Mutant(
        "chunk-eagle",
        "CHUNK.END",
        "with eagle the last cacheable block end is not a block earlier",
        (Edit(C, " - (block_size if eagle else 0)", ""),),
        ("C2", "C4"),
    ),
    Mutant(
        "chunk-no-tail",
        "CHUNK.END",
        "a chunk does not stop at the prompt's last hash boundary",
        (Edit(C, "    if fine and cacheable < tail < num_prompt_tokens:\n", "    if False:\n"),),
        ("C7",),
    ),
    Mutant(
        "chunk-tail-always",
        "CHUNK.END",
        "a chunk stops at the last hash boundary without fine mode too",
        (
            Edit(
                C,
                "if fine and cacheable < tail < num_prompt_tokens:",
                "if cacheable < tail < num_prompt_tokens:",
            ),
        ),
        ("C7",),
    ),
    Mutant(
        "chunk-no-boundary",
        "CHUNK.END",
        "a chunk does not stop at a shared-prefix boundary",
        (
            Edit(
                C,
                "    end = stop_at(boundary // block_size * block_size, start, end)\n",
                "",
            ),
        ),
        ("C1",),
    ),
    Mutant(
        "chunk-boundary-off-grid",
        "CHUNK.END",
        "a shared-prefix boundary inside a block is a stop",
        (Edit(C, "stop_at(boundary // block_size * block_size,", "stop_at(boundary,"),),
        ("C2",),
    ),
    Mutant(
        "chunk-latest-stop",
        "CHUNK.END",
        "of several stops the last cacheable end wins, not the earliest",
        (
            Edit(
                C,
                "    assert start <= end <= start + wanted\n",
                "    if start < cacheable < start + wanted:\n        end = cacheable\n",
            ),
        ),
    ),
]
