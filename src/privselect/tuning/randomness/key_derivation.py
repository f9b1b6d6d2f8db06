"""Everything random in a run, derived from one secret.

A stream is BLAKE2b in counter mode under a key of its own. Keys are derived from the secret by name and number, so that nothing
that is handed to a worker tells anything about the secret or about another trial.
"""

from __future__ import annotations

from hashlib import blake2b

SECRET_BYTES = 32
DERIVATION = 1  # of keys from the secret, and of draws from keys: a run begun under another one cannot be resumed
_BLOCK = 64


def derived(secret: bytes, name: str, number: int = 0) -> bytes:
    """32 bytes that nobody without the secret can tell from random ones, and that are the same each time."""
    return blake2b(number.to_bytes(16, "big"), digest_size=32, key=secret, person=name.encode("ascii")).digest()


class Stream:
    """Uniformly random bits from a key: what exact samplers ask for."""

    __slots__ = ("_at", "_have", "_key", "_pool")

    def __init__(self, key: bytes) -> None:
        self._key, self._at, self._pool, self._have = key, 0, 0, 0

    def __repr__(self) -> str:
        return "Stream(...)"

    @property
    def key(self) -> bytes:
        """From which the same stream can be had again, from its beginning."""
        return self._key

    def getrandbits(self, k: int, /) -> int:
        """A uniformly random whole number below ``2^k``."""
        while self._have < k:
            block = blake2b(self._at.to_bytes(16, "big"), digest_size=_BLOCK, key=self._key).digest()
            self._pool |= int.from_bytes(block, "little") << self._have
            self._have += 8 * _BLOCK
            self._at += 1
        bits = self._pool & ((1 << k) - 1)
        self._pool >>= k
        self._have -= k
        return bits
