"""Names and writing of the figures' files."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING

from privselect._util.atomic_files import atomic_write, check_output_file, write_error
from privselect._util.plotting import check_matplotlib, save_plot
from privselect._util.validation import format_value
from privselect.errors import ParameterError
from research.csv_io import as_csv
from research.figures.figures import picture

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from research.figures.figures import Drawable

KINDS = ("png", "svg", "csv")
_LONGEST_FIRST = (8, 7, 4, 6)  # so that no long figure starts last
_PROCESSES = 2


def figure_file(folder: Path, number: int, kind: str) -> Path:
    """Return the path of a figure in a folder."""
    return folder / f"figure_{number}.{kind}"


def check_files(folder: Path, numbers: Iterable[int], kinds: Sequence[str]) -> None:
    """Create the folder if needed; raise if the files cannot be written or drawn."""
    if set(kinds) != {"csv"}:
        check_matplotlib()
    try:
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"`out` must be a folder, got the file {format_value(str(folder))}")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"`out` must be a folder that can be made, got {format_value(str(folder))} ({error.strerror})") from None
    for number in numbers:
        for kind in kinds:
            check_output_file("out", figure_file(folder, number, kind))


def write_files(found: Drawable, folder: Path, number: int, kinds: Iterable[str]) -> list[Path]:
    """Write each file atomically and return the paths."""
    written = []
    for kind in kinds:
        file = figure_file(folder, number, kind)
        try:
            if kind == "csv":
                atomic_write(file, as_csv(found.rows()))
            else:
                save_plot(found.figure(), file)
        except OSError as error:
            raise write_error("out", file, error) from None
        written.append(file)
    return written


def make_figure(folder: Path, number: int, kinds: Sequence[str]) -> list[Path]:
    """Compute one figure and write its files."""
    return write_files(picture(number), folder, number, kinds)


def make_figures(folder: Path, numbers: Iterable[int], kinds: Sequence[str]) -> Iterator[tuple[int, list[Path]]]:
    """Compute several figures in parallel and yield each when it is done."""
    order = sorted(numbers, key=lambda number: _LONGEST_FIRST.index(number) if number in _LONGEST_FIRST else len(_LONGEST_FIRST))
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as pool:
        asked = {pool.submit(make_figure, folder, number, kinds): number for number in order}
        try:
            for done in as_completed(asked):
                yield asked[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after a failure, do not wait for the others
