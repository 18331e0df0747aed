"""Digests (design 4.1): what a prefix is called, and what it is told apart by.

SHA-256 cannot be reasoned about, so digests themselves are computed; that no two inputs of it
share a digest is the one thing taken for granted. What goes into it is confirmed to differ.
"""

from __future__ import annotations

from kvspec.spec.digests import (
    Prefix,
    Tag,
    encode_extras,
    extend_digests,
    make_prefix,
)
from kvspec.spec.types import Adapter, Identity, Media, Token

from .model import about, settled

TOKENS = tuple(map(Token, range(6)))
PLAIN = Identity()
IDEAL = "the digest of a prefix taken to be the prefix itself"


@about("HASH.STABLE", bound="up to 6 tokens, hash units 1 to 3")
def one_digest_a_complete_unit(length: int, unit: int) -> int:
    """There is a digest at 0 and at each complete unit, and at no other length.

    pre: 0 <= length <= 6 and unit in (1, 2, 3)
    post: (_ - 1) * unit <= length < _ * unit
    """
    return len(extend_digests((), TOKENS[:length], unit, PLAIN))


@about("HASH.STABLE", bound="up to 5 tokens, hash units 1 and 2")
def digests_do_not_depend_on_arrival(first: int, length: int, unit: int) -> bool:
    """A prefix has the same digests and tags whether its tokens came at once or in two parts.

    pre: 0 <= first <= length <= 5 and unit in (1, 2)
    post: _
    """
    first, length, unit = settled(first, 5), settled(length, 5), settled(unit, 2)
    whole = make_prefix(PLAIN, TOKENS[:length], unit)
    parts = make_prefix(PLAIN, TOKENS[:first], unit).extended(TOKENS[first:length])
    return whole.digests == parts.digests and whole.tag(length) == parts.tag(length)


@about("HASH.INJECTIVE", bound="a unit of 3 tokens")
def media_counts_in_the_units_it_overlaps(start: int, length: int, unit: int) -> bool:
    """A media item is part of a unit's extras exactly where the two overlap.

    pre: 0 <= start <= 6 and 1 <= length <= 3 and unit in (0, 3, 6)
    post: _
    """
    identity = Identity(media=(Media("m", start, length),))
    overlaps = any(unit <= position < unit + 3 for position in range(start, start + length))
    return (encode_extras(identity, unit, unit + 3) != b"") == overlaps


@about("HASH.INJECTIVE", bound="media that starts at 0 to 6, units of 3 tokens")
def moved_media_is_another_prefix(one: int, other: int) -> bool:
    """Media at another place gives some unit other extras.

    pre: 0 <= one < other <= 6
    post: _
    """
    first, second = (Identity(media=(Media("m", start, 2),)) for start in (one, other))
    units = range(0, 9, 3)
    return any(
        encode_extras(first, unit, unit + 3) != encode_extras(second, unit, unit + 3)
        for unit in units
    )


@about("HASH.INJECTIVE", bound="a shift of a whole number of units, 3 tokens each")
def media_is_placed_relative_to_its_unit(offset: int, shift: int) -> bool:
    """A unit's extras tell where in the unit its media starts, not how far from the prompt's.

    pre: 0 <= offset <= 2 and 0 <= shift <= 2
    post: _
    """
    here = Identity(media=(Media("m", offset, 1),))
    there = Identity(media=(Media("m", offset + 3 * shift, 1),))
    return encode_extras(here, 0, 3) == encode_extras(there, 3 * shift, 3 * shift + 3)


NAMES = ("a", "aAa" + 8 * "\0")
"""Texts that would be confused if their lengths were not part of the code."""


@about("HASH.INJECTIVE", bound="two texts, of which one contains the code of the other")
def salt_and_adapter_are_told_apart(salt: int, name: int, other_salt: int, other_name: int) -> bool:
    """Two identities have the same extras in the first unit only if they are the same.

    pre: salt in (0, 1, 2) and name in (0, 1, 2)
    pre: other_salt in (0, 1, 2) and other_name in (0, 1, 2)
    post: _
    """
    one, other = identity(salt, name), identity(other_salt, other_name)
    return (encode_extras(one, 0, 3) == encode_extras(other, 0, 3)) == (one == other)


def identity(salt: int, name: int) -> Identity:
    """An identity with texts by their index, none for 2."""
    salt, name = settled(salt, 2), settled(name, 2)
    adapter = Adapter(NAMES[name]) if name < 2 else None
    return Identity(NAMES[salt] if salt < 2 else None, adapter)


@about("HASH.INJECTIVE", bound="versions 0 to 3")
def adapter_version_counts(version: int, other: int) -> bool:
    """Two versions of an adapter have different extras in every unit.

    pre: 0 <= version < other <= 3
    post: _
    """
    one, two = (Identity(adapter=Adapter("a", settled(v, 3))) for v in (version, other))
    return all(encode_extras(one, at, at + 3) != encode_extras(two, at, at + 3) for at in (0, 3))


@about("HASH.INJECTIVE", bound="the first two units")
def salt_counts_once(start: int) -> bool:
    """A salt is part of the first unit only: later ones follow from it.

    pre: start in (0, 3)
    post: _
    """
    return (encode_extras(Identity(salt="s"), start, start + 3) != b"") == (start == 0)


def ideal(tokens: tuple[Token, ...], unit: int) -> Prefix:
    """A prefix whose digests are what they are digests of."""
    digests = tuple(tokens[: k * unit] for k in range(len(tokens) // unit + 1))
    return Prefix(PLAIN, tokens, unit, digests)  # type: ignore[arg-type]


@about("HASH.INJECTIVE", "DATA.READ", bound=f"3 tokens each, hash unit 2; {IDEAL}")
def tags_differ_where_tokens_do(
    one: tuple[Token, Token, Token], other: tuple[Token, Token, Token], length: int
) -> bool:
    """Two prefixes agree on a length, and have the same tag there, exactly where they have the
    same tokens up to it.

    pre: length in (0, 1, 2, 3)
    post: _
    """
    first, second = ideal(one, 2), ideal(other, 2)
    same = one[:length] == other[:length]
    tags: tuple[Tag, Tag] = first.tag(length), second.tag(length)
    return first.agrees(second, length) == same == (tags[0] == tags[1])
