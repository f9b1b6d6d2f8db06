"""Draw figures of the paper: ``python -m research.figures 3`` or ``make figures``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError
from research.figures.figures import MEASURED, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ALL = "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what the arguments ask for and print the names of the files; return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        _draw(_numbers(given.number), given.out, ("png", "csv") if given.format is None else (given.format,), given.data)
    except PrivselectError as error:
        print("error:", error, file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m research.figures", description="Draw the figures of the paper with the exact bound.")
    parser.add_argument("number", nargs="?", default=_ALL, help="a figure of the paper, 1 to 8, or all (default)")
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder for the files (default: figures)")
    parser.add_argument("--format", choices=("png", "svg", "csv"), help="a picture, or its numbers (default: both .png and .csv)")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="measure figure 5 again on the data sets in FOLDER (default: stored results)",
    )
    return parser


def _numbers(number: str) -> tuple[int, ...]:
    if number == _ALL:
        return NUMBERS
    if number not in map(str, NUMBERS):
        raise ParameterError(f"the figure must be one of {', '.join(map(str, NUMBERS))} or {_ALL}, got {format_value(number)}")
    return (int(number),)


def _draw(numbers: tuple[int, ...], out: Path, kinds: tuple[str, ...], data: Path | None) -> None:
    _check_data(numbers, data)

    from research.figures.figure_files import check_files, make_figure, make_figures

    check_files(out, numbers, kinds)  # before the work starts
    written: dict[int, Iterable[Path]] = {}
    others = [one for one in numbers if one != MEASURED]
    if len(others) == 1:
        written[others[0]] = make_figure(out, others[0], kinds)
    elif others:
        for done, files in make_figures(out, others, kinds):
            print(f"figure {done} is done", file=sys.stderr)
            written[done] = files
    if MEASURED in numbers:
        written[MEASURED] = _draw_measured(out, kinds, data)
    for one in numbers:
        for file in written[one]:
            print(file)


def _check_data(numbers: tuple[int, ...], data: Path | None) -> None:
    if data is None:
        return
    if MEASURED not in numbers:
        raise ParameterError(f"`data` applies to figure {MEASURED} or {_ALL} only, got it with figure {numbers[0]}")

    from research.figures.linear_regression import check_data

    try:
        check_data(str(data))
    except ParameterError as error:
        raise ParameterError(str(error).replace("`folder`", "`data`", 1)) from None


def _draw_measured(out: Path, kinds: tuple[str, ...], data: Path | None) -> list[Path]:
    from research.figures.figure_5 import picture
    from research.figures.figure_files import write_files

    files = write_files(picture(data), out, MEASURED, kinds)
    if data is None:
        print(f"figure {MEASURED} shows stored results; pass --data FOLDER with its data sets to measure again")
    return files


if __name__ == "__main__":
    sys.exit(main())
