"""The digests of a request's tokens, growing at the end."""

from __future__ import annotations

from kvspec.spec.digests import SEED, encode_extras, unit_digest
from kvspec.spec.types import Digest, Identity, Token


class DigestChain:
    """How many tokens are known, and the digest of each complete unit of them.

    What a digest is stands in `kvspec.spec.digests`. Its `Prefix` holds on to all tokens, and
    copies them when it is extended; here only those after the last complete unit are kept, so that
    a sampled token costs the same however long the request is.

    Grow:  `extend`
    Ask:   `count`, `digests` (of 0, 1, 2, ... units)
    Prove: `check`
    """

    __slots__ = ("count", "digests", "hash_unit", "identity", "plain", "rest")

    def __init__(self, identity: Identity, tokens: tuple[Token, ...], hash_unit: int) -> None:
        """The chain of a prompt. O(len(tokens))."""
        self.identity = identity
        self.plain: bool = identity == Identity()
        self.hash_unit: int = hash_unit
        self.count: int = 0
        self.rest: tuple[Token, ...] = ()
        self.digests: list[Digest] = [SEED]
        self.extend(tokens)

    def extend(self, tokens: tuple[Token, ...]) -> None:
        """Tokens become known. O(len(tokens) + hash unit).

        >>> chain = DigestChain(Identity(), (Token(1), Token(2), Token(3)), 2)
        >>> chain.extend((Token(4),))
        >>> chain.count, len(chain.digests)
        (4, 3)
        """
        unit, digests = self.hash_unit, self.digests
        rest = self.rest + tokens
        self.count += len(tokens)
        at, start = 0, (len(digests) - 1) * unit
        extras = b""
        while len(rest) - at >= unit:
            if not self.plain:
                extras = encode_extras(self.identity, start, start + unit)
            digests.append(unit_digest(digests[-1], rest[at : at + unit], extras))
            at += unit
            start += unit
        self.rest = rest[at:]
        assert start + len(self.rest) == self.count

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        fields = f"{self.count=} {self.rest=} {self.digests=} {self.hash_unit=}"
        # Complete units have digests, the rest is less than a unit, nothing is missing. O(1)
        units = len(self.digests) - 1
        assert units * self.hash_unit + len(self.rest) == self.count, f"chain: {fields}"
        assert len(self.rest) < self.hash_unit, f"chain: {fields}"
