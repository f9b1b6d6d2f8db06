"""``privselect figure``: the figures of the paper, made again."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from privselect.cli.printing import working
from privselect.errors import ParameterError
from privselect.parameters import shown

Which = Annotated[str, typer.Argument(metavar="N|all", help="A figure of the paper, 1 to 8, or all of them.", show_default=False)]
OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the files, made if it is missing.")]
Kind = Annotated[
    Literal["png", "svg", "csv"] | None,
    typer.Option("--format", help="A picture, or the numbers in it. Without it: both the .png and the .csv file."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", help="The data sets of figure 5, measured anew in minutes. Without it: stored results."),
]

_ALL = "all"


def figure(number: Which, out: OutFolder = Path("figures"), kind: Kind = None, data: DataFolder = None) -> None:
    """The figures of the paper, with ours beside its curves."""
    from privselect.paper.figures import MEASURED, NUMBERS

    if number != _ALL and number not in map(str, NUMBERS):
        raise ParameterError(f"the figure must be one of {', '.join(map(str, NUMBERS))} or {_ALL}, got {shown(number)}")
    numbers = NUMBERS if number == _ALL else (int(number),)
    kinds = ("png", "csv") if kind is None else (kind,)
    _check_data(numbers, data)

    from privselect.paper.figure_files import check_files, make_figure, make_figures

    check_files(out, numbers, kinds)  # before the work begins
    written = {}
    others = [one for one in numbers if one != MEASURED]
    if len(others) == 1:
        with working(f"figure {number}"):
            written[others[0]] = make_figure(out, others[0], kinds)
    elif others:
        for done, files in make_figures(out, others, kinds):
            print(f"figure {done} is done", file=sys.stderr)
            written[done] = files
    if MEASURED in numbers:
        written[MEASURED] = _make_measured(out, kinds, data)
    for one in numbers:
        for file in written[one]:
            print(file)


def _check_data(numbers: tuple[int, ...], data: Path | None) -> None:
    from privselect.paper.figures import MEASURED

    if data is None:
        return
    if MEASURED not in numbers:
        raise ParameterError(f"`data` must go with figure {MEASURED} or {_ALL}, got it with figure {numbers[0]}")

    from privselect.paper.linear_regression import check_data

    try:
        check_data(str(data))
    except ParameterError as error:
        raise ParameterError(str(error).replace("`folder`", "`data`", 1)) from None


def _make_measured(out: Path, kinds: tuple[str, ...], data: Path | None) -> list[Path]:
    from privselect.paper.figure_5 import picture
    from privselect.paper.figure_files import write_files
    from privselect.paper.figures import MEASURED

    with working(f"figure {MEASURED}"):
        files = write_files(picture(data), out, MEASURED, kinds)
    if data is None:
        print(f"figure {MEASURED} shows stored results; with its data sets in a folder, --data FOLDER measures anew")
    return files
