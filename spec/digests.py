"""What a prefix is called (design 4.1), and what its positions are tagged with (4.11)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from .types import Digest, Identity, Token

SEED = Digest(hashlib.sha256(b"kvspec/1").digest())
"""D(0)."""

Tag = tuple[Digest, tuple[Token, ...], bytes]
"""A prefix of any length: the digest of its complete units, the tokens that remain, and their
extras. Two prefixes have the same tag if and only if they compute the same thing."""


def encode_text(kind: bytes, text: str) -> bytes:
    """Encode one value of one dimension so that no two (dimension, value) pairs share a code."""
    raw = text.encode("utf-8", "surrogatepass")
    return kind + struct.pack("<Q", len(raw)) + raw


def encode_extras(identity: Identity, start: int, end: int) -> bytes:
    """Encode what besides the tokens decides the content of the unit [start, end)."""
    parts: list[bytes] = []
    if identity.salt is not None and start == 0:
        parts.append(encode_text(b"S", identity.salt))
    if identity.adapter is not None:
        name, version = identity.adapter.name, identity.adapter.version
        parts.append(encode_text(b"A", name) + struct.pack("<q", version))
    for item in identity.media:
        if item.start < end and start < item.start + item.length:
            offset, length = item.start - start, item.length
            parts.append(encode_text(b"M", item.content) + struct.pack("<qq", offset, length))
    return b"".join(parts)


def encode_tokens(tokens: Sequence[Token]) -> bytes:
    """Encode tokens as 32-bit little-endian integers."""
    return struct.pack(f"<{len(tokens)}I", *tokens)


def unit_digest(parent: Digest, tokens: Sequence[Token], extras: bytes) -> Digest:
    """D(k) from D(k-1), the tokens of unit k and its extras."""
    body = struct.pack("<Q", len(tokens)) + encode_tokens(tokens) + extras
    return Digest(hashlib.sha256(parent + body).digest())


def extend_digests(
    known: tuple[Digest, ...], tokens: tuple[Token, ...], hash_unit: int, identity: Identity
) -> tuple[Digest, ...]:
    """Digests D(0)..D(k) of all complete units of `tokens`, given the first of them."""
    digests = list(known) or [SEED]
    for start in range((len(digests) - 1) * hash_unit, len(tokens) - hash_unit + 1, hash_unit):
        end = start + hash_unit
        extras = encode_extras(identity, start, end)
        digests.append(unit_digest(digests[-1], tokens[start:end], extras))
    return tuple(digests)


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The tokens a request is known to have, with the digest of each complete unit.

    Those that came with it and those that came after stand apart, so that one token more does not
    cost a copy of a long prompt.
    """

    identity: Identity
    prompt: tuple[Token, ...]
    hash_unit: int
    digests: tuple[Digest, ...]
    later: tuple[Token, ...] = ()

    def __len__(self) -> int:
        return len(self.prompt) + len(self.later)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens."""
        return self.prompt + self.later

    def extended(self, tokens: tuple[Token, ...]) -> Prefix:
        """This prefix with `tokens` behind it."""
        digests, later = self.digests, self.later + tokens
        if (len(self.prompt) + len(later)) // self.hash_unit >= len(digests):
            digests = extend_digests(digests, self.prompt + later, self.hash_unit, self.identity)
        return Prefix(self.identity, self.prompt, self.hash_unit, digests, later)

    def digest_at(self, length: int) -> Digest:
        """The digest of the first `length` tokens, a multiple of the hash unit."""
        return self.digests[length // self.hash_unit]

    def tag(self, length: int) -> Tag:
        """The tag of the first `length` tokens: what position `length - 1` holds."""
        units, rest = divmod(length, self.hash_unit)
        if not rest:
            return self.digests[units], (), b""
        start = length - rest
        extras = encode_extras(self.identity, start, length)
        return self.digests[units], self._between(start, length), extras

    def _between(self, start: int, end: int) -> tuple[Token, ...]:
        border = len(self.prompt)
        return self.prompt[start:end] + self.later[max(start - border, 0) : max(end - border, 0)]

    def agrees(self, other: Prefix, length: int) -> bool:
        """Whether the first `length` tokens of both compute the same thing."""
        if length > min(len(self), len(other)):
            return False
        if self is other:
            return True
        units = length // self.hash_unit
        if self.digests[units] != other.digests[units]:
            return False
        return length % self.hash_unit == 0 or self.tag(length) == other.tag(length)


def make_prefix(identity: Identity, tokens: tuple[Token, ...], hash_unit: int) -> Prefix:
    """The prefix of a request that has just arrived."""
    return Prefix(identity, tokens, hash_unit, extend_digests((), tokens, hash_unit, identity))
