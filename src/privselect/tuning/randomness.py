"""The randomness of a run: one secret, the keys derived from it, and the generators given to a trial.

A stream is BLAKE2b in counter mode under its own key. Each key is derived from the secret by a name and a number, so the key given to
a worker reveals nothing about the secret or about other trials.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import sys
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.plan_violation import PlanViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.counts import Count

SECRET_BYTES = 32
DERIVATION_VERSION = 1  # of keys and draws: a run started under another version cannot be resumed
SECURE_SEED_BITS = 128  # a shorter seed can be found by search from a released model
_BLOCK = 64
_TWISTER_WORDS = 624  # 32-bit words of a Mersenne Twister state, used by torch and by numpy's RandomState
_TORCH_START = 24  # bytes before these words in a CPU generator's state: the seed, two flags, the next word
_DEVICE_SEED_BITS = 64  # a GPU generator takes no longer seed
_GLOBALS_LOCK = threading.RLock()
_TORCH_LATE = (
    "torch was first imported inside a trial, too late to set its generator from the trial's randomness; import torch next to the objective"
)


# -- keys ----------------------------------------------------------------------------------------------------------------------


def derive_key(secret: bytes, name: str, number: int = 0) -> bytes:
    """Return 32 bytes, a fixed function of the arguments, which look random to anyone without the secret."""
    return blake2b(number.to_bytes(16, "big"), digest_size=32, key=secret, person=name.encode("ascii")).digest()


class Stream:
    """Uniformly random bits from a key, for exact samplers."""

    __slots__ = ("_counter", "_key", "_pool", "_pool_bits")

    def __init__(self, key: bytes) -> None:
        self._key, self._counter, self._pool, self._pool_bits = key, 0, 0, 0

    def __repr__(self) -> str:
        return "Stream(...)"

    @property
    def key(self) -> bytes:
        """The key, from which the same stream can be started again."""
        return self._key

    def getrandbits(self, k: int, /) -> int:
        """Return a uniformly random integer below ``2^k``."""
        while self._pool_bits < k:
            block = blake2b(self._counter.to_bytes(16, "big"), digest_size=_BLOCK, key=self._key).digest()
            self._pool |= int.from_bytes(block, "little") << self._pool_bits
            self._pool_bits += 8 * _BLOCK
            self._counter += 1
        bits = self._pool & ((1 << k) - 1)
        self._pool >>= k
        self._pool_bits -= k
        return bits


# -- the start of a run: tune and the audit call the same two functions --------------------------------------------------------


def new_secret() -> bytes:
    """Return a fresh secret from the operating system, once per run."""
    return secrets.token_bytes(SECRET_BYTES)


def draw_trial_count(count: Count, secret: bytes) -> int:
    """Draw K exactly from its distribution."""
    return count.sample(Stream(derive_key(secret, "count")))


# -- the randomness of one trial -----------------------------------------------------------------------------------------------


class Randomness:
    """The randomness given to the objective: 256 bits, from which it makes generators.

    Each call returns a new generator, independent of all previous ones, because noise drawn twice would cancel out.
    The first call of a method returns the same generator in every run of the trial, and so do the second and the third. So a trial is
    a pure function of its randomness if it makes the same calls in the same order.
    ``seed_bits`` is the declared shortest seed that the trainer takes; a shorter one is refused.
    """

    __slots__ = ("_bits", "_calls", "_lock", "_seed")

    def __init__(self, seed: bytes, seed_bits: int = SECURE_SEED_BITS) -> None:
        if not isinstance(seed, bytes) or 8 * len(seed) < SECURE_SEED_BITS:
            raise ParameterError(f"`seed` must be at least {SECURE_SEED_BITS // 8} bytes, got {_describe_seed(seed)}")
        self._seed = seed
        self._calls: dict[str, int] = {}
        self._lock = threading.Lock()  # two threads of a trainer must not get the same generator
        self._bits = int(check_number("seed_bits", seed_bits, integer_range(1, SECURE_SEED_BITS)))

    def __repr__(self) -> str:
        return "Randomness(...)"  # a seed is secret

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process: each copy would give the same noise."""
        raise ParameterError("a trial's randomness cannot be copied: two copies give the same noise. Pass generators made from it instead")

    def stream(self, name: str = "stream") -> Stream:
        """Return a cryptographic stream of uniform bits, for exact samplers. Two streams are independent, even with the same name."""
        if not isinstance(name, str):
            raise ParameterError(f"`name` must be text, got {format_value(name)}")
        return Stream(self._next_key("stream", name))

    def numpy(self) -> np.random.Generator:
        """Return a numpy generator seeded with 256 bits."""
        return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(self._next_integer("numpy"), pool_size=8)))

    def random_state(self) -> np.random.RandomState:
        """Return numpy's older generator, as scikit-learn's estimators take it. Its whole state is drawn, since a seed has 32 bits only."""
        generator = np.random.RandomState(0)
        generator.set_state(("MT19937", self._twister_words("random_state"), _TWISTER_WORDS, 0, 0.0))
        return generator

    def python(self) -> random.Random:
        """Return Python's own generator, seeded with 256 bits."""
        return random.Random(self._next_integer("python"))  # noqa: S311 - the trainer requests this generator

    def torch(self) -> Any:
        """Return a torch generator (CPU) whose whole state is drawn; ``manual_seed`` would keep 32 bits of a seed."""
        import torch

        generator = torch.Generator()
        generator.manual_seed(0)  # a valid state, whose words are then replaced; the next draw generates new words from them
        state = generator.get_state().numpy().copy()
        state[_TORCH_START : _TORCH_START + 8 * _TWISTER_WORDS].view("<u8")[:] = self._twister_words("torch")
        generator.set_state(torch.from_numpy(state))
        return generator

    def derived(self, name: str) -> Randomness:
        """Return randomness that is independent of this one and of any derived with another name."""
        return Randomness(self._next_key("derived", name), self._bits)

    def integer(self, bits: int = SECURE_SEED_BITS) -> int:
        """Return a seed of this many bits, for a trainer that takes an integer. Fewer than 128 must be declared by ``seed_bits``."""
        length = int(check_number("bits", bits, integer_range(1, 4096)))
        if length < self._bits:
            raise ParameterError(
                f"`bits` must be at least {self._bits}, got {length}. Declare a trainer that takes fewer than {SECURE_SEED_BITS} bits "
                f"with seed_bits={length}, which the certificate then states"
            )
        return Stream(self._next_key("integer")).getrandbits(length)

    def _twister_words(self, name: str) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Draw every word of a Mersenne Twister state."""
        bits = 32 * _TWISTER_WORDS
        return np.frombuffer(Stream(self._next_key(name)).getrandbits(bits).to_bytes(bits // 8, "little"), dtype="<u4")

    def _next_integer(self, name: str) -> int:
        return int.from_bytes(self._next_key(name), "big")

    def _next_key(self, kind: str, name: str = "") -> bytes:
        """Derive a new key for each call."""
        label = f"{kind}:{name}"
        with self._lock:
            call = self._calls[label] = self._calls.get(label, -1) + 1
        return blake2b(label.encode("utf-8", "surrogatepass"), digest_size=32, key=derive_key(self._seed, kind, call)).digest()


def _describe_seed(seed: object) -> str:
    # Never the seed itself.
    return f"{len(seed)} bytes" if isinstance(seed, bytes) else format_value(type(seed).__name__)


# -- the generators of the whole process ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def seeded_globals(randomness: Randomness) -> Iterator[None]:
    """Set the global generators of ``random``, numpy and torch from the trial's randomness, and restore them afterwards.

    They are restored because, in the coordinator's process, a state left behind would reveal a trial's noise.
    torch must be imported before: it starts every process with the same known state, and noise from a known state is no protection.
    GPU generators take a seed of 64 bits, and are seeded by the system afterwards. Threads of a process take turns, since the first to
    finish would restore the old state while the second still draws its noise.
    """
    with _GLOBALS_LOCK, contextlib.ExitStack() as undo:
        undo.callback(random.setstate, random.getstate())
        random.setstate(randomness.python().getstate())
        undo.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002 - the legacy global generator is meant
        np.random.set_state(randomness.random_state().get_state())  # noqa: NPY002 - as above
        if (torch := sys.modules.get("torch")) is not None:
            undo.callback(torch.set_rng_state, torch.get_rng_state())
            undo.callback(torch.seed)
            torch.manual_seed(randomness.stream("devices").getrandbits(_DEVICE_SEED_BITS))  # seeds every GPU there is
            torch.set_rng_state(randomness.torch().get_state())
        yield
        if torch is None and "torch" in sys.modules:
            raise PlanViolation(_TORCH_LATE)
