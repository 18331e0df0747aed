"""Keys: two different prefixes never share one, equal ones always do, in every process."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.spec.digests import (
    SEED,
    Prefix,
    encode_extras,
    encode_text,
    encode_tokens,
    extend_digests,
    make_prefix,
    unit_digest,
)
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


# --- worked values --------------------------------------------------------------------------------


def test_encodings_byte_by_byte() -> None:
    """They are part of the format (design 4.1): a recorded trace has digests of them."""
    assert encode_text(b"S", "\xe9") == b"S" + bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"\xc3\xa9"
    assert encode_text(b"S", "\ud800") == b"S" + bytes([3, 0, 0, 0, 0, 0, 0, 0]) + b"\xed\xa0\x80"
    assert encode_tokens((Token(1), Token(258))) == bytes([1, 0, 0, 0, 2, 1, 0, 0])
    count = bytes([2, 0, 0, 0, 0, 0, 0, 0])
    body = count + encode_tokens((Token(1), Token(258))) + b"extras"
    digest = unit_digest(SEED, (Token(1), Token(258)), b"extras")
    assert digest == hashlib.sha256(SEED + body).digest()
    assert hashlib.sha256(b"kvspec/1").digest() == SEED


def test_extras_of_a_unit() -> None:
    """The salt stands in the first unit, the adapter in each, media where they lie."""
    salted = Identity(salt="s")
    assert encode_extras(salted, 0, 2) == encode_text(b"S", "s")
    assert encode_extras(salted, 2, 4) == b""
    adapted = Identity("s", Adapter("a", 3))
    version = struct.pack("<q", 3)
    assert encode_extras(adapted, 4, 6) == encode_text(b"A", "a") + version
    assert encode_extras(adapted, 0, 2) == (
        encode_text(b"S", "s") + encode_text(b"A", "a") + version
    )
    older = Identity(adapter=Adapter("a", -1))
    assert encode_extras(older, 0, 2) == encode_text(b"A", "a") + b"\xff" * 8
    shown = Identity(media=(Media("m", 3, 4), Media("n", 7, 1)))
    units = [encode_extras(shown, start, start + 2) for start in range(0, 10, 2)]
    first = [encode_text(b"M", "m") + struct.pack("<qq", 3 - start, 4) for start in (2, 4, 6)]
    last = encode_text(b"M", "n") + struct.pack("<qq", 1, 1)
    assert units == [b"", first[0], first[1], first[2] + last, b""]
    assert encode_extras(shown, 1, 3) == b"", "an item that begins where the unit ends"


def test_digests_go_on_from_those_that_are_known() -> None:
    tokens = tuple(Token(n) for n in range(7))
    digests = extend_digests((), tokens, 3, Identity())
    assert len(digests) == 3
    assert digests[0] == SEED
    assert digests[2] == unit_digest(digests[1], tokens[3:6], b"")
    assert extend_digests(digests[:2], tokens, 3, Identity()) == digests
    assert extend_digests(digests, tokens, 3, Identity()) == digests


def test_a_tag_is_the_digest_of_complete_units_and_what_remains() -> None:
    known = make_prefix(Identity(salt="s"), tuple(Token(n) for n in (5, 6, 7)), 4)
    known = known.extended((Token(8), Token(9))).extended((Token(10),))
    assert len(known) == 6
    assert known.tokens == (5, 6, 7, 8, 9, 10)
    assert known.digest_at(4) == known.digests[1]
    assert known.tag(4) == (known.digests[1], (), b"")
    assert known.tag(2) == (SEED, (5, 6), encode_text(b"S", "s"))
    assert known.tag(6) == (known.digests[1], (9, 10), b"")
    assert known.tag(0) == (SEED, (), b"")
    whole = make_prefix(Identity(), tuple(Token(n) for n in (5, 6, 7, 8)), 4)
    assert whole.extended((Token(9), Token(10))).tag(6) == (whole.digests[1], (9, 10), b"")


def test_prefixes_agree_up_to_where_they_part() -> None:
    one, two = prefix((1, 2, 3, 4, 5), 2), prefix((1, 2, 3, 9, 5), 2)
    assert [one.agrees(two, n) for n in range(6)] == [True, True, True, True, False, False]
    assert one.agrees(one, 5)
    assert not one.agrees(one, 6)
    assert not one.agrees(prefix((1, 2), 2), 3)
    assert not prefix((1, 2), 2).agrees(one, 3)
    salted = prefix((1, 2, 3, 4, 5), 2, salt="s")
    assert [one.agrees(salted, n) for n in range(4)] == [True, False, False, False]
