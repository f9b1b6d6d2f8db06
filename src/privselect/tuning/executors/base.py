"""The one protocol behind which trials are run, be it here, in processes or on a cluster.

An :class:`Engine` opens an executor (:class:`concurrent.futures.Executor`) for one :class:`~privselect.tuning.trial.Work`, which it
ships to each worker once. ``executor.submit(function, candidate, seed)`` then runs ``function(work, candidate, seed)`` in a worker.
The function is :func:`~privselect.tuning.trial.perform`, which never raises: a future that raises tells that its worker was lost.
The runner then closes the executor, opens another and submits the same trial again; it is pure, so a trial that an engine itself
runs twice does no harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from privselect.tuning.trial import Work


class Engine(ABC):
    """Where trials are run: a description, which holds nothing of a run."""

    name: ClassVar[str]
    workers: int
    can_limit_time: ClassVar[bool] = True  # whether a trial can be stopped after a time limit
    can_limit_memory: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = ()  # what only this engine makes visible, for the certificate

    @property
    def memory_share(self) -> int | None:
        """The bytes that one worker may have where nobody says, or None where this engine does not know its machines."""
        return None

    @abstractmethod
    def open(self, work: Work) -> Executor:
        """An executor that knows the work. Its ``shutdown`` stops every worker, also one in the middle of a trial."""
