"""The chunk rule (design 4.10): a chunk advances or waits for room, and ends where it may."""

from __future__ import annotations

from kvspec.optimized.chunk_rule import chunk_tokens
from kvspec.spec.chunks import (
    aligned_end,
    block_fits_no_step,
    chunk_length,
    free_from,
    last_cacheable_end,
    stops,
)
from kvspec.spec.events import Chunk

from .model import about

FOUR = "block size 4, hash unit 2"
FINE = f"{FOUR}, fine mode, no eagle, no cap"


def asked(chunk: Chunk) -> bool:
    """Whether the event language lets this be asked, with the sizes of `FOUR`."""
    return (
        chunk.block_size == 4
        and chunk.hash_unit == 2
        and chunk.start >= 0
        and chunk.wanted >= 0
        and chunk.num_prompt_tokens >= 1
        and chunk.num_tokens >= chunk.num_prompt_tokens
        and chunk.start + chunk.wanted <= chunk.num_tokens
        and chunk.budget >= 1
        and chunk.cap >= 0
        and chunk.boundary >= 0
    )


def fine(start: int, wanted: int, prompt: int, later: int, budget: int, boundary: int) -> Chunk:
    """A question of `FINE`, `later` tokens behind the prompt."""
    return Chunk(start, wanted, prompt, prompt + later, 4, 2, budget, 0, True, False, boundary)


def resumable(chunk: Chunk, end: int) -> bool:
    """Whether design 4.10 lets a chunk end here: on the block grid, at the prompt's last hash
    boundary, anywhere once the prompt is done, or anywhere where a whole block fits no step."""
    return (
        end % chunk.block_size == 0
        or end >= free_from(chunk)
        or (chunk.fine and end == chunk.num_prompt_tokens - chunk.num_prompt_tokens % 2)
        or block_fits_no_step(chunk)
    )


@about("CHUNK.END", bound=FOUR)
def grid_end_is_legal(chunk: Chunk) -> int:
    """Before any stop a chunk ends on the block grid, at what was wanted of it, or stands still.

    pre: asked(chunk) and chunk.start < free_from(chunk)
    post: chunk.start <= _ <= chunk.start + chunk.wanted
    post: _ % 4 == 0 or _ == chunk.start or resumable(chunk, _)
    """
    return aligned_end(chunk)


@about("CHUNK.ADVANCE", bound=FOUR)
def stands_still_only_for_room(chunk: Chunk) -> int:
    """Where a whole block fits no step, the end lies past the start.

    pre: asked(chunk) and chunk.wanted >= 1 and block_fits_no_step(chunk)
    post: _ > chunk.start
    """
    return aligned_end(chunk)


@about("CHUNK.END", bound=FOUR)
def every_stop_is_legal(chunk: Chunk) -> bool:
    """Every stop is on the block grid, or is the prompt's last hash boundary in fine mode.

    pre: asked(chunk)
    post: _
    """
    tail = chunk.num_prompt_tokens - chunk.num_prompt_tokens % 2
    return all(stop % 4 == 0 or (chunk.fine and stop == tail) for stop in stops(chunk))


@about("CHUNK.END", bound=FOUR)
def cacheable_end_leaves_room(chunk: Chunk) -> int:
    """The last cacheable end is a block end within the tokens, one block less with eagle.

    pre: asked(chunk)
    post: _ % 4 == 0 and 0 <= _ <= chunk.num_tokens
    post: _ + 4 > chunk.num_tokens - 4 * chunk.eagle
    post: not chunk.eagle or _ == 0 or _ + 4 <= chunk.num_tokens
    """
    return last_cacheable_end(chunk)


@about("CHUNK.END", bound=f"{FINE}, nothing sampled yet")
def ends_legally(start: int, wanted: int, prompt: int, budget: int, boundary: int) -> bool:
    """A chunk computes no more than was wanted and ends where it may, or waits.

    pre: start >= 0 and wanted >= 1 and start + wanted <= prompt
    pre: budget >= 1 and boundary >= 0
    post: _
    """
    chunk = fine(start, wanted, prompt, 0, budget, boundary)
    length = chunk_length(chunk)
    return length == 0 or (0 < length <= wanted and resumable(chunk, start + length))


@about("CHUNK.ADVANCE", bound=FINE, slow=True)
def advances_or_waits_for_room(
    start: int, wanted: int, prompt: int, later: int, budget: int, boundary: int
) -> bool:
    """No tokens are computed only where a block fits a step but not what is left of this one.

    pre: start >= 0 and wanted >= 1 and prompt >= 1 and later >= 0
    pre: start + wanted <= prompt + later
    pre: budget >= 1 and boundary >= 0
    post: _
    """
    chunk = fine(start, wanted, prompt, later, budget, boundary)
    if chunk_length(chunk) > 0:
        return True
    return budget >= 4 and start < free_from(chunk) and wanted < 4 - start % 4


@about("CHUNK.END", bound=f"{FINE}, nothing sampled yet", slow=True)
def passes_no_stop(start: int, wanted: int, prompt: int, budget: int, boundary: int) -> bool:
    """No chunk runs past a block end from inside a block, the last cacheable end, the prompt's
    last hash boundary behind it, or a shared-prefix boundary.

    pre: 0 <= start < prompt - 1 and wanted >= 1 and start + wanted <= prompt
    pre: budget >= 1 and boundary >= 0
    post: _
    """
    chunk = fine(start, wanted, prompt, 0, budget, boundary)
    end, whole, tail = start + chunk_length(chunk), prompt - prompt % 4, prompt - prompt % 2
    shared = boundary - boundary % 4
    return (
        (start % 4 == 0 or end <= start - start % 4 + 4)
        and (start >= whole or end <= whole)
        and (start >= tail or end <= tail)
        and (start >= shared or end <= shared)
    )


@about("CHUNK.END", bound=FOUR)
def done_prompt_is_not_clipped(chunk: Chunk) -> int:
    """Once the prompt is done, or one token is left, a chunk is all that was wanted.

    pre: asked(chunk) and chunk.start >= free_from(chunk)
    post: _ == chunk.wanted
    """
    return chunk_length(chunk)


@about("CHUNK.END", "CHUNK.ADVANCE", bound=FOUR, slow=True)
def every_question(chunk: Chunk) -> bool:
    """Within what was wanted, a legal end, and no standing still where a block fits no step: of
    every question, with eagle, with a cap, in fine mode and outside it.

    pre: asked(chunk) and chunk.wanted >= 1
    post: _
    """
    length = chunk_length(chunk)
    if length == 0:
        return not block_fits_no_step(chunk) and chunk.start < free_from(chunk)
    return 0 < length <= chunk.wanted and resumable(chunk, chunk.start + length)


@about("CHUNK.END", "LIVE.EXACT", bound=FINE, slow=True)
def fast_rule_is_the_same(
    start: int, wanted: int, prompt: int, later: int, budget: int, boundary: int
) -> bool:
    """The fast manager's chunk rule gives what the specification gives.

    pre: start >= 0 and wanted >= 1 and prompt >= 1 and later >= 0
    pre: start + wanted <= prompt + later
    pre: budget >= 1 and boundary >= 0
    post: _
    """
    fast = chunk_tokens(
        start, wanted, prompt, prompt + later, 4, 2, budget, 0, True, False, boundary
    )
    return fast == chunk_length(fine(start, wanted, prompt, later, budget, boundary))
