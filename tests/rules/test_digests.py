"""Keys: two different prefixes never share one, equal ones always do, in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.spec.digests import Prefix, make_prefix
from kvspec.spec.types import Adapter, Identity, Media, Token

TOKENS = st.lists(st.integers(0, 2).map(Token), min_size=1, max_size=8).map(tuple)
TEXTS = st.sampled_from(["", "a", "b", "ab"])
IDENTITIES = st.builds(
    Identity,
    salt=st.none() | TEXTS,
    adapter=st.none() | st.builds(Adapter, TEXTS, st.integers(0, 2)),
    media=st.lists(st.builds(Media, TEXTS, st.integers(0, 6), st.integers(1, 3)), max_size=2).map(
        tuple
    ),
)

GOLDEN = ["caab2b37a0597d27", "b3ab78df0e163e3a", "df23ab09cd15bfa9"]
GOLDEN_SALTED = "f410211daa69678f"


def prefix(tokens: tuple[int, ...], unit: int = 2, **identity: object) -> Prefix:
    made = Identity(**identity)  # type: ignore[arg-type]
    return make_prefix(made, tuple(Token(t) for t in tokens), unit)


@pytest.mark.clause("HASH.STABLE")
def test_golden_values() -> None:
    """Digests that were computed once must stay: they are part of the format."""
    found = prefix((1, 2, 3, 4, 5))
    assert [digest.hex()[:16] for digest in found.digests] == GOLDEN
    salted = prefix((1, 2), salt="s")
    assert salted.digests[1].hex()[:16] == GOLDEN_SALTED


@pytest.mark.clause("HASH.STABLE")
@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_same_in_every_process(hash_seed: str) -> None:
    program = (
        "from kvspec.spec.digests import make_prefix\n"
        "from kvspec.spec.types import Identity\n"
        "print(make_prefix(Identity('s'), tuple(range(9)), 4).digests[-1].hex())"
    )
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == prefix(tuple(range(9)), 4, salt="s").digests[-1].hex()


@pytest.mark.clause("HASH.INJECTIVE")
@given(TOKENS, IDENTITIES, TOKENS, IDENTITIES, st.integers(1, 4), st.data())
def test_tags_are_injective(
    one: tuple[Token, ...],
    first: Identity,
    two: tuple[Token, ...],
    second: Identity,
    unit: int,
    data: st.DataObject,
) -> None:
    """Tags agree exactly when tokens and everything that decides their content agree."""
    length = data.draw(st.integers(0, min(len(one), len(two))))
    a, b = make_prefix(first, one, unit), make_prefix(second, two, unit)

    def meaning(identity: Identity, tokens: tuple[Token, ...]) -> object:
        media = [item for item in identity.media if item.start < length]
        return tokens[:length], length and (identity.salt, identity.adapter, media)

    same = meaning(first, one) == meaning(second, two)
    if same:
        assert a.tag(length) == b.tag(length)
    elif first.media == second.media:
        assert a.tag(length) != b.tag(length)


@pytest.mark.clause("HASH.INJECTIVE")
def test_dimensions_do_not_clash() -> None:
    """A salt 'x' is not an adapter 'x', nor a media item 'x' (vLLM #44701)."""
    kinds = [
        prefix((1, 2)),
        prefix((1, 2), salt="x"),
        prefix((1, 2), adapter=Adapter("x")),
        prefix((1, 2), adapter=Adapter("x", 1)),
        prefix((1, 2), media=(Media("x", 0, 1),)),
        prefix((1, 2), media=(Media("x", 1, 1),)),
        prefix((1, 2), media=(Media("x", 0, 2),)),
    ]
    assert len({found.digests[1] for found in kinds}) == len(kinds)


@given(TOKENS, TOKENS, IDENTITIES, st.integers(1, 4))
def test_extending_is_starting_over(
    head: tuple[Token, ...], tail: tuple[Token, ...], identity: Identity, unit: int
) -> None:
    extended = make_prefix(identity, head, unit).extended(tail)
    assert extended.digests == make_prefix(identity, head + tail, unit).digests
