"""Hypothesis strategies: configurations, prompts, identities, chunk questions.

Sizes are small on purpose: a fault that needs a long prompt needs a short one with small blocks.
"""

from __future__ import annotations

from hypothesis import strategies as st

from kvspec.spec import events as ev
from kvspec.spec.types import (
    Adapter,
    Config,
    Connector,
    Group,
    GroupKind,
    Identity,
    Media,
    Token,
    ceil_div,
)

TOKENS = st.sampled_from([0, 1, 2, 2**30]).map(Token)
"""A small alphabet, so that prompts share prefixes and differ by one token, or by its high bits."""

NAMES = st.sampled_from(["a", "b"])
"""Of salts, adapters and media: the same text stands for each of them."""


@st.composite
def groups(draw: st.DrawFn, kind: GroupKind, hash_unit: int) -> Group:
    """A group whose block is one to four hash units."""
    size = hash_unit * draw(st.sampled_from([2, 4, 1, 3]))
    eagle = kind is GroupKind.FULL and draw(st.integers(0, 3)) == 3
    return Group(kind, size, eagle=eagle, zeroed=draw(st.integers(0, 2)) == 2)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Caches: one or two full groups, up to two recurrent ones, pools from scarce to ample."""
    unit = draw(st.integers(1, 4))
    num_full = draw(st.sampled_from([1, 1, 1, 2]))
    num_recurrent = draw(st.sampled_from([1, 1, 1, 0, 2]))
    full = [draw(groups(GroupKind.FULL, unit)) for _ in range(num_full)]
    recurrent = [draw(groups(GroupKind.MAMBA_ALIGN, unit)) for _ in range(num_recurrent)]
    max_model_len = draw(st.integers(4, 12)) * unit
    most = sum(ceil_div(max_model_len, g.block_size) for g in full) + 3 * len(recurrent)
    slack = draw(st.sampled_from([30, 16, 8, 4, 2, 1, 64]))
    connector = draw(st.sampled_from([*Connector, Connector.DIVERGING]))
    in_flight = draw(st.sampled_from([1, 1, 2, 3]))
    deferral = draw(st.booleans()) or (in_flight > 1 and connector is not Connector.NONE)
    return Config(
        num_blocks=1 + most + slack,
        hash_unit=unit,
        groups=(*full, *recurrent),
        max_model_len=max_model_len,
        caching=draw(st.integers(0, 15)) != 15,
        connector=connector,
        deferral=deferral,
        max_in_flight=in_flight,
    )


@st.composite
def identities(draw: st.DrawFn, known: list[Identity], length: int) -> Identity:
    """Mostly the plain identity, or one that was seen before; else all dimensions together."""
    kind = draw(st.integers(0, 9))
    fitting = [i for i in known if all(m.start + m.length <= length for m in i.media)]
    if kind < 6 or (kind < 8 and not fitting):
        return Identity()
    if kind < 8:
        return draw(st.sampled_from(fitting))
    adapters = st.builds(Adapter, NAMES, st.integers(0, 1))
    return Identity(
        salt=draw(st.none() | NAMES),
        adapter=draw(st.none() | adapters),
        media=draw(media(length)),
    )


@st.composite
def media(draw: st.DrawFn, length: int) -> tuple[Media, ...]:
    """Up to two items in order, of any length that fits `length` tokens."""
    items: list[Media] = []
    start = 0
    for _ in range(draw(st.sampled_from([0, 1, 2]))):
        start += draw(st.integers(0, 3))
        if start < length:
            size = draw(st.integers(1, length - start))
            items.append(Media(draw(NAMES), start, size))
            start += size
    return tuple(items)


@st.composite
def prompts(draw: st.DrawFn, known: list[tuple[Token, ...]], longest: int) -> tuple[Token, ...]:
    """A prompt that often continues, or cuts, one that was seen before."""
    stem: tuple[Token, ...] = ()
    continues = draw(st.integers(0, 4)) > 0
    if known and continues:
        stem = draw(st.sampled_from(known))
        if draw(st.booleans()):
            stem = stem[: draw(st.integers(0, len(stem)))]
    tail = draw(st.lists(TOKENS, min_size=0 if stem else 1, max_size=longest))
    return (stem + tuple(tail))[:longest] or (Token(0),)


@st.composite
def chunk_questions(draw: st.DrawFn) -> ev.Chunk:
    """Chunk arithmetic around every kind of boundary."""
    unit = draw(st.integers(1, 4))
    block = unit * draw(st.integers(1, 6))
    prompt = draw(st.integers(1, 60))
    total = prompt + draw(st.sampled_from([0, 0, 1, 7]))
    start = draw(st.integers(0, total - 1))
    budget, cap = draw(st.integers(1, 40)), draw(st.sampled_from([0, 0, 3, 10]))
    room = min(total - start, budget, cap or budget)
    return ev.Chunk(
        start=start,
        wanted=room if draw(st.booleans()) else draw(st.integers(1, room)),
        num_prompt_tokens=prompt,
        num_tokens=total,
        block_size=block,
        hash_unit=unit,
        budget=budget,
        cap=cap,
        fine=draw(st.booleans()),
        eagle=draw(st.integers(0, 3)) == 3,
        boundary=draw(st.sampled_from([0, 0, start + 1, start + block, total])),
    )
