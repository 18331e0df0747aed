"""Faults of HASH: what a prefix is called (design 4.1)."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import REFERENCE, Mutant

C = "digest_chain"
IDENTITY = "self.identity = identity\n"
UNIT = "unit_digest(digests[-1], rest[at : at + unit], extras)"
SEEDED = "self.digests: list[Digest] = [SEED]"
EXTRAS = "extras = encode_extras(self.identity, start, start + unit)"


def _identity(id: str, title: str, identity: str, *atlas: str) -> Mutant:
    """A dimension of the identity that does not reach the digest."""
    edit = Edit(C, IDENTITY, f"self.identity = {identity}\n")
    return Mutant(id, "HASH.INJECTIVE", title, (edit,), atlas)


MUTANTS = [
    Mutant(
        "hash-last-token",
        "HASH.INJECTIVE",
        "the digest ignores the last token of a unit",
        (Edit(C, UNIT, "unit_digest(digests[-1], rest[at : at + unit - 1], extras)"),),
        ("D1",),
    ),
    Mutant(
        "hash-first-token",
        "HASH.INJECTIVE",
        "the digest ignores the first token of a unit",
        (Edit(C, UNIT, "unit_digest(digests[-1], rest[at + 1 : at + unit], extras)"),),
        ("D1",),
    ),
    Mutant(
        "hash-no-parent",
        "HASH.INJECTIVE",
        "a unit's digest does not depend on the units before it",
        (Edit(C, UNIT, "unit_digest(SEED, rest[at : at + unit], extras)"),),
        ("D1",),
    ),
    Mutant(
        "hash-short",
        "HASH.INJECTIVE",
        "a digest is one byte long, so that prefixes collide",
        (Edit(C, UNIT, f"Digest({UNIT}[:1])"),),
        ("D1",),
    ),
    Mutant(
        "hash-unordered",
        "HASH.INJECTIVE",
        "the order of the tokens in a unit does not count",
        (Edit(C, UNIT, "unit_digest(digests[-1], tuple(sorted(rest[at : at + unit])), extras)"),),
        ("D1",),
    ),
    Mutant(
        "hash-low-byte",
        "HASH.INJECTIVE",
        "only the low byte of a token is hashed",
        (
            Edit(
                C,
                UNIT,
                "unit_digest(digests[-1], tuple([t % 256 for t in rest[at : at + unit]]), extras)",
            ),
        ),
        ("D1",),
    ),
    _identity(
        "hash-no-salt",
        "the salt is not in the key",
        "Identity(None, identity.adapter, identity.media)",
        "D3",
    ),
    _identity(
        "hash-no-adapter",
        "the adapter is not in the key",
        "Identity(identity.salt, None, identity.media)",
        "D5",
    ),
    _identity(
        "hash-no-version",
        "the adapter's version is not in the key",
        "Identity(identity.salt, identity.adapter and "
        "type(identity.adapter)(identity.adapter.name), identity.media)",
        "D5",
    ),
    _identity(
        "hash-no-adapter-name",
        "of an adapter only the version is in the key",
        "Identity(identity.salt, identity.adapter and "
        'type(identity.adapter)("", identity.adapter.version), identity.media)',
        "D5",
    ),
    _identity(
        "hash-untyped",
        "an adapter is keyed as a salt of the same text",
        "Identity(identity.adapter.name if identity.adapter else identity.salt, None, "
        "identity.media)",
        "D4",
    ),
    _identity(
        "hash-salt-or-adapter",
        "the salt is dropped where there is an adapter",
        "Identity(None if identity.adapter else identity.salt, identity.adapter, identity.media)",
        "D3",
        "D4",
    ),
    _identity(
        "hash-no-media",
        "media are not in the key",
        "Identity(identity.salt, identity.adapter, ())",
    ),
    _identity(
        "hash-media-content",
        "of media only the place is in the key",
        "Identity(identity.salt, identity.adapter, "
        'tuple([type(m)("", m.start, m.length) for m in identity.media]))',
    ),
    _identity(
        "hash-media-last",
        "only the last media item is in the key",
        "Identity(identity.salt, identity.adapter, identity.media[-1:])",
    ),
    Mutant(
        "hash-media-offset",
        "HASH.INJECTIVE",
        "where in its unit a media item stands is not in the key",
        (
            Edit(
                C,
                EXTRAS,
                "extras = encode_extras(Identity(self.identity.salt, self.identity.adapter, "
                "tuple([type(m)(m.content, start, unit) for m in self.identity.media "
                "if m.start < start + unit and start < m.start + m.length])), start, start + unit)",
            ),
        ),
    ),
    Mutant(
        "hash-by-arrival",
        "HASH.STABLE",
        "the key depends on how many tokens came at once",
        (Edit(C, 'extras = b""', "extras = bytes(len(tokens) % 2)"),),
        ("D8",),
    ),
    Mutant(
        "hash-by-request",
        "HASH.STABLE",
        "the key depends on the length of the whole prompt",
        (
            Edit(
                C, SEEDED, f"{SEEDED}\n        self.digests = [Digest(SEED + bytes([len(tokens)]))]"
            ),
        ),
        ("D8",),
    ),
    Mutant(
        "hash-shown-anew",
        "HASH.STABLE",
        "the books name a digest after the block that has it, though it is found as ever",
        (
            Edit(
                "manager",
                "digest.hex()",
                "digest.hex() + str(block)",
            ),
        ),
        ("D8",),
        package=REFERENCE,
    ),
    Mutant(
        "hash-shown-alike",
        "HASH.INJECTIVE",
        "the books name the first two prefixes alike",
        (
            Edit(
                "manager",
                "        pins = [block for r in requests",
                "        keyed = [d for d, n in zip(index.digest_of, index.length_of) if n]\n"
                "        self.alike += [d for d in keyed if d not in self.alike]\n"
                "        alike = {d: 'alike' for d in self.alike[:2]}\n"
                "        pins = [block for r in requests",
            ),
            Edit(
                "manager",
                "index.digest_of[b].hex()),)",
                "alike.get(index.digest_of[b], index.digest_of[b].hex())),)",
            ),
            Edit(
                "manager",
                "        self.asked = self.found",
                "        self.alike = []\n        self.asked = self.found",
            ),
        ),
        ("D1",),
    ),
    Mutant(
        "hash-shown-short",
        "HASH.INJECTIVE",
        "the books name a digest by its first byte, though blocks are found by all of it",
        (Edit("manager", "digest.hex()", "digest.hex()[:2]"),),
        ("D1",),
        package=REFERENCE,
    ),
]
