"""Steps on an executor: each is a function of files, and its result a folder named by its inputs.

Any `concurrent.futures.Executor` will do whose workers see the same folders: processes of one
machine, or a cluster's. Nothing is kept in workers. What a step returns is in its folder; so a step
that was done before is not done again, and one whose worker was killed is done anew, to the same
bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .store import FORM, is_written, key_of, write_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from .places import Place

Given = ParamSpec("Given")
Found = TypeVar("Found")
StepResult = tuple["Mapping[str, Any]", "Mapping[str, NDArray[Any]]"]


@dataclass(frozen=True)
class ShardStep(ABC):
    """What is to be done: a small value that can be sent to any worker.

    Attributes
    ----------
    root : Place
        The folder of all results.
    """

    root: Place

    @property
    @abstractmethod
    def inputs(self) -> tuple[Any, ...]:
        """All that the result follows from, as JSON: options, and the names of other results."""

    @abstractmethod
    def work(self) -> StepResult:
        """Return facts and columns of the result."""

    @property
    def place(self) -> Place:
        """Where the result is, or will be."""
        kind = type(self).__name__.lower()
        return self.root / kind / key_of(FORM, kind, *self.inputs)


def do_step(step: ShardStep) -> Place:
    """Do a step unless its result is there, and return where it is."""
    if not is_written(step.place):
        write_columns(step.place, *step.work())
    return step.place


def do_steps(
    executor: Executor, steps: Sequence[ShardStep], *, told: Callable[[int], object] | None = None
) -> list[Place]:
    """Do steps in any order, on any workers; return their places in the order of the steps.

    `told` is called with how many are done whenever that is one more; if it raises, what has not
    begun is not done.
    """
    places: list[Place] = []
    with closing(_done(executor, steps)) as done:
        for place in done:
            places.append(place)
            if told is not None:
                told(len(places))
    return places


def _done(executor: Executor, steps: Sequence[ShardStep]) -> Generator[Place, None, None]:
    yield from executor.map(do_step, steps)


class SerialExecutor(Executor):
    """An executor without workers: it does at once what it is given, or when it is asked for."""

    def map(
        self,
        fn: Callable[..., Found],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[Found]:
        """Call a function with each of the arguments, when its result is asked for."""
        del timeout, chunksize
        return (self.submit(fn, *each).result() for each in zip(*iterables, strict=False))

    def submit(
        self, fn: Callable[Given, Found], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Future[Found]:
        """Call a function, and return what came of it."""
        future: Future[Found] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
