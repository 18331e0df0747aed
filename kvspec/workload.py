"""Workload traces: what real users asked, as prompts that share prefixes (design section 10).

A trace has one JSON object a line: `timestamp`, `input_length`, `output_length` and `hash_ids`, one
id for each 512 prompt tokens, the last of which may stand for fewer. Equal ids mean equal content
of the whole prefix up to there. Other fields are passed over.

Nobody published the tokens, so each id gets its own: token j of id n is n * 512 + j. Ids are below
2^21, which keeps prompts in the lower half of the token ids; sampled tokens come from the upper
half and can never continue one prompt into another.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from kvspec.spec.types import Token, align_down, ceil_div

from .errors import BadInput
from .files import AnyPath, read_lines

TRACE_BLOCK = 512
"""Tokens that one id of a trace stands for."""

MAX_LENGTH = 2**24
"""The longest prompt or output, in tokens: a larger number is a mistake or an attack."""

NUM_IDS = 2**21
"""Ids are below this, so that the tokens of all of them fit below `SAMPLED`."""

SAMPLED = NUM_IDS * TRACE_BLOCK
"""The first token id that may be sampled: prompts have none from here on."""

_STRIDE = 1_000_003
"""Tokens between one sampled token of a request and its next: any odd number does."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of a workload; lengths in tokens, `timestamp` in milliseconds."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]

    def prompt(self) -> tuple[Token, ...]:
        """The prompt's tokens."""
        tokens: list[int] = []
        for number in self.hash_ids:
            first = number * TRACE_BLOCK
            tokens += range(first, first + TRACE_BLOCK)
        return cast(tuple[Token, ...], tuple(tokens[: self.input_length]))


def sampled_token(request: int, position: int) -> Token:
    """What the request of this number samples at this position of its output.

    At every position any two requests sample different tokens.
    """
    return Token(SAMPLED + (request + position * _STRIDE) % SAMPLED)


# --- reading --------------------------------------------------------------------------------------

_Id = Annotated[int, Meta(ge=0, lt=NUM_IDS)]


class _Line(msgspec.Struct):
    timestamp: Annotated[float, Meta(ge=0)]
    input_length: Annotated[int, Meta(ge=1, le=MAX_LENGTH)]
    output_length: Annotated[int, Meta(ge=0, le=MAX_LENGTH)]
    hash_ids: tuple[_Id, ...]


def read_workload(path: AnyPath, limit: int | None = None) -> Iterator[Arrival]:
    """The requests of a trace, in order, `limit` at most. Raises `BadInput`."""
    before, empty = 0.0, True
    for where, data in islice(read_lines(path), limit):
        arrival = _arrival(data, where)
        if arrival.timestamp < before:
            raise BadInput(
                f"{where}: timestamp: expected at least the {before:g} of the line before, "
                f"got {arrival.timestamp:g}"
            )
        before, empty = arrival.timestamp, False
        yield arrival
    if empty and limit != 0:
        raise BadInput(f"{path} line 1: expected a request, got an empty file")


def _arrival(data: object, where: str) -> Arrival:
    if not isinstance(data, dict):
        raise BadInput(f"{where}: expected an object with fields {', '.join(_fields())}")
    for name in _fields():
        if name not in data:
            raise BadInput(f"{where}: {name}: expected this field, it is missing")
    try:
        line = msgspec.convert(data, _Line)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {_explain(str(error), data)}") from None
    expected = ceil_div(line.input_length, TRACE_BLOCK)
    if len(line.hash_ids) != expected:
        raise BadInput(
            f"{where}: hash_ids: expected {expected} ids for input_length {line.input_length}, "
            f"one per {TRACE_BLOCK} tokens, got {len(line.hash_ids)}"
        )
    return Arrival(line.timestamp, line.input_length, line.output_length, line.hash_ids)


def _fields() -> tuple[str, ...]:
    return _Line.__struct_fields__


def _explain(text: str, data: dict[str, Any]) -> str:
    """The field first, then what was expected of it, then what was found."""
    what, _, path = text.replace("`", "").partition(" - at $.")
    if "got" not in what:
        field, _, index = path.removesuffix("]").partition("[")
        found = data[field][int(index)] if index else data[field]
        what += f", got {str(found)[:40]}"
    return f"{path}: {what[:1].lower()}{what[1:]}"


# --- made up --------------------------------------------------------------------------------------


def generated_workload(seed: int, conversations: int = 12) -> list[Arrival]:
    """Conversations of several turns that share system prompts, the same for the same seed.

    Each turn continues the one before with new ids, so that whole blocks are shared; now and then
    a prompt is asked again word for word, which shares its last, partial block too.
    """
    rng = random.Random(seed)
    fresh = iter(range(NUM_IDS))
    systems = [tuple(islice(fresh, rng.randint(1, 3))) for _ in range(2)]
    histories = [rng.choice(systems) for _ in range(conversations)]
    last: dict[int, Arrival] = {}
    arrivals: list[Arrival] = []
    for turn in range(3 * conversations):
        talk = rng.randrange(conversations)
        timestamp, output = float(turn * 100), rng.randint(1, 40)
        if talk in last and rng.randrange(4) == 0:
            again = last[talk]
            arrivals.append(Arrival(timestamp, again.input_length, output, again.hash_ids))
            continue
        whole = histories[talk] + tuple(islice(fresh, rng.randint(0, 3)))
        tail = rng.randrange(TRACE_BLOCK)
        ids = whole + tuple(islice(fresh, 1 if tail else 0))
        last[talk] = Arrival(timestamp, len(whole) * TRACE_BLOCK + tail, output, ids)
        histories[talk] = whole
        arrivals.append(last[talk])
    return arrivals


# --- what could be reused -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reuse:
    """How much of a workload an unbounded cache can serve.

    `references` counts block references, `distinct` the ids among them; `repeated_tokens` are those
    of references seen before. `servable_tokens` is what is left of them when a hit ends on a block
    end and leaves the last prompt token to compute.
    """

    requests: int
    references: int
    distinct: int
    prompt_tokens: int
    repeated_tokens: int
    servable_tokens: int


def measure_reuse(arrivals: Iterable[Arrival], block_size: int = TRACE_BLOCK) -> Reuse:
    """The upper bound of what a cache of full attention serves, with hits on block ends."""
    seen: set[int] = set()
    requests = references = prompt = repeated = servable = 0
    for arrival in arrivals:
        known = 0
        while known < len(arrival.hash_ids) and arrival.hash_ids[known] in seen:
            known += 1
        leading = min(known * TRACE_BLOCK, arrival.input_length)
        requests += 1
        references += len(arrival.hash_ids)
        prompt += arrival.input_length
        repeated += leading
        servable += align_down(min(leading, arrival.input_length - 1), block_size)
        seen.update(arrival.hash_ids)
    return Reuse(requests, references, len(seen), prompt, repeated, servable)
