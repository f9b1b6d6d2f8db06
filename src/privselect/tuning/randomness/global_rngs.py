"""The generators that belong to a whole process, for trainers that take their randomness from these."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np

from privselect.tuning.plan_violation import Breach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.tuning.randomness.trial_randomness import Randomness

_DEVICE_BITS = 64  # of a seed, which is all that a generator on a GPU takes
_ONE_AT_A_TIME = threading.RLock()
_TOO_LATE = (
    "torch was first imported inside a trial, too late for its generator to be set from the trial's randomness; import it beside the "
    "objective"
)


@contextlib.contextmanager
def seeded_globals(randomness: Randomness) -> Iterator[None]:
    """Within, the generators of ``random``, numpy and torch are the trial's own, each with its whole state drawn; then as before.

    What was there comes back: in one process with the coordinator, a state that is left behind would tell the noise of a trial.
    torch must be loaded before: it begins every process with the same known state, and noise made of that is no noise. Generators on
    GPUs take a seed of 64 bits, and are then seeded by the system. Threads of one process take turns: the first to end would give
    back the state from before while the second still draws its noise.
    """
    with _ONE_AT_A_TIME, contextlib.ExitStack() as undo:
        undo.callback(random.setstate, random.getstate())
        random.setstate(randomness.python().getstate())
        undo.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002 - this very generator is meant
        np.random.set_state(randomness.random_state().get_state())  # noqa: NPY002 - as above
        if (torch := sys.modules.get("torch")) is not None:
            undo.callback(torch.set_rng_state, torch.get_rng_state())
            undo.callback(torch.seed)
            torch.manual_seed(randomness.stream("devices").getrandbits(_DEVICE_BITS))  # whatever devices there are
            torch.set_rng_state(randomness.torch().get_state())
        yield
        if torch is None and "torch" in sys.modules:
            raise Breach(_TOO_LATE)
