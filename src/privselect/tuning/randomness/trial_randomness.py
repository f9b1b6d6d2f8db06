"""The randomness of one trial: 256 bits of its own, from which the generators of trainers are made."""

from __future__ import annotations

import random
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.randomness.key_derivation import Stream, derived

if TYPE_CHECKING:
    import numpy as np

ENOUGH_BITS = 128  # below this a seed can be found by search from a released model
_TWISTER_WORDS = 624  # of 32 bits, the state of a Mersenne Twister, as torch and numpy's older generator have
_TORCH_START = 24  # bytes before these words in the state of a CPU generator: the seed, two flags, the next word


class Randomness:
    """Handed to the objective. Each call gives another generator, independent of all others: noise drawn twice would cancel out.

    The first call of a method gives the same in every run of the trial, and so do the second and the third: a trial is a pure function
    of its randomness, as long as it asks for the same things in the same order.
    ``seed_bits`` is the least that the trainer was declared to take; asking for a shorter seed is refused.
    """

    __slots__ = ("_bits", "_calls", "_lock", "_seed")

    def __init__(self, seed: bytes, seed_bits: int = ENOUGH_BITS) -> None:
        if not isinstance(seed, bytes) or 8 * len(seed) < ENOUGH_BITS:
            raise ParameterError(f"`seed` must be at least {ENOUGH_BITS // 8} bytes, got {_size(seed)}")
        self._seed = seed
        self._calls: dict[str, int] = {}
        self._lock = threading.Lock()  # two threads of a trainer must not be given one generator
        self._bits = int(check_number("seed_bits", seed_bits, integer_range(1, ENOUGH_BITS)))

    def __repr__(self) -> str:
        return "Randomness(...)"  # a seed is a secret

    def __reduce__(self) -> NoReturn:
        """Not to be copied, nor sent to another process: each copy would give the same noise."""
        raise ParameterError(
            "the randomness of a trial cannot be copied, as two copies give the same noise; hand out generators made by it"
        )

    def stream(self, name: str = "stream") -> Stream:
        """Uniform bits, by a cryptographic generator: for exact samplers. Two streams are independent, also two of one name."""
        if not isinstance(name, str):
            raise ParameterError(f"`name` must be text, got {format_value(name)}")
        return Stream(self._derived("stream", name))

    def numpy(self) -> np.random.Generator:
        """A numpy generator seeded with 256 bits."""
        import numpy as np

        return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(self._whole("numpy"), pool_size=8)))

    def random_state(self) -> np.random.RandomState:
        """The older generator of numpy, as scikit-learn's estimators take it, its whole state drawn; as a seed it takes 32 bits."""
        import numpy as np

        generator = np.random.RandomState(0)
        generator.set_state(("MT19937", self._twister("random_state"), _TWISTER_WORDS, 0, 0.0))
        return generator

    def python(self) -> random.Random:
        """Python's own generator, seeded with 256 bits."""
        return random.Random(self._whole("python"))  # noqa: S311 - the trainer asks for this very generator

    def torch(self) -> Any:
        """A torch generator (CPU) whose whole state is drawn; ``manual_seed`` would keep 32 bits of a seed."""
        import torch

        generator = torch.Generator()
        generator.manual_seed(0)  # a valid state, whose words are then replaced; the next number makes new ones of them
        state = generator.get_state().numpy().copy()
        state[_TORCH_START : _TORCH_START + 8 * _TWISTER_WORDS].view("<u8")[:] = self._twister("torch")
        generator.set_state(torch.from_numpy(state))
        return generator

    def integer(self, bits: int = ENOUGH_BITS) -> int:
        """A seed of so many bits, for a trainer that takes a number; fewer than 128 must be declared by ``seed_bits``."""
        wanted = int(check_number("bits", bits, integer_range(1, 4096)))
        if wanted < self._bits:
            raise ParameterError(
                f"`bits` must be at least {self._bits}, got {wanted}: a trainer that takes fewer than {ENOUGH_BITS} bits is declared "
                f"with seed_bits={wanted}, which stands in the certificate"
            )
        return Stream(self._derived("integer")).getrandbits(wanted)

    def _twister(self, name: str) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """The words of a Mersenne Twister, each drawn."""
        import numpy as np

        bits = 32 * _TWISTER_WORDS
        return np.frombuffer(Stream(self._derived(name)).getrandbits(bits).to_bytes(bits // 8, "little"), dtype="<u4")

    def _whole(self, name: str) -> int:
        return int.from_bytes(self._derived(name), "big")

    def _derived(self, kind: str, name: str = "") -> bytes:
        """A key of its own for each call."""
        label = f"{kind}:{name}"
        with self._lock:
            call = self._calls[label] = self._calls.get(label, -1) + 1
        return blake2b(label.encode("utf-8", "surrogatepass"), digest_size=32, key=derived(self._seed, kind, call)).digest()


def _size(seed: object) -> str:
    # Never the seed itself.
    return f"{len(seed)} bytes" if isinstance(seed, bytes) else format_value(type(seed).__name__)
