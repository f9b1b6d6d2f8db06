"""Tables of the pages are written between their marks from the stored results; all other text stays."""

import pytest
from experiments_made import result_rows
from test_stage_tables import result_rows as stage_result_rows
from test_stage_tables import single_rows

from privselect.errors import ParameterError
from research.csv_io import as_csv
from research.experiments.pages import (
    FILES,
    PAGES,
    STORED,
    accuracy_table,
    filled,
    gains_table,
    laws_table,
    main,
    noise_table,
    tables,
    trials_table,
)

HEADLINE = {
    "epsilon": "1",
    "mean": "1000",
    "untuned_noise": "1.5",
    "exact_noise": "2.00049",
    "paper_noise": "3.14159",
    "renyi_noise": "4",
    "composition_noise": "",
    "exact_trials_at_paper_noise": "12345.6",
    "exact_trials_at_renyi_noise": "99000",
    "paper_trials_at_exact_noise": "47.158",
    "renyi_trials_at_exact_noise": "0",
}
MARKED = (
    "before\n<!-- a -->\nold\nlines\n<!-- end a -->\nbetween <!-- b -->\n<!-- end b --> after\n<!-- other -->\nkept\n<!-- end other -->\n"
)


def cells(table):
    """The lines below the heading, as their cells."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def heading(table):
    return [cell.strip() for cell in table.splitlines()[0].strip("|").split("|")]


def test_only_what_stands_between_marks_is_replaced():
    assert filled(MARKED, {"a": "new", "b": "x", "c": "nowhere"}) == (
        "before\n<!-- a -->\nnew\n<!-- end a -->\nbetween <!-- b -->\nx\n<!-- end b --> after\n<!-- other -->\nkept\n<!-- end other -->\n"
    )


def test_filling_again_changes_nothing_and_a_page_without_marks_stays():
    made = {"a": "| 1 |\n| 2 |", "b": ""}
    assert filled(filled(MARKED, made), made) == filled(MARKED, made)
    assert filled("no marks\n", made) == "no marks\n"


def test_a_mark_without_its_end_is_refused_and_loses_no_page():
    with pytest.raises(ParameterError, match=r"^a page must have the mark <!-- end a --> after <!-- a -->, got none$"):
        filled("<!-- a -->\nall the rest\n", {"a": "new"})


def test_the_noise_and_the_trials_of_the_headline():
    """Noise is rounded up and trials down: what is typed from a page keeps the budget."""
    noise, trials = noise_table([HEADLINE]), trials_table([HEADLINE])
    assert cells(noise) == [["1", "1,000", "1.500", "**2.001**", "3.142", "4.000", "-", "12 times", "99 times"]]
    assert cells(trials) == [["1", "1,000", "12,345", "99,000", "47.1", "none"]]
    assert all(len(heading(table)) == len(cells(table)[0]) for table in (noise, trials))


def test_accuracies_in_percent_with_half_their_intervals():
    table = cells(accuracy_table(result_rows(), "public"))
    assert len(table) == 3 * 2
    wanted = ["97.0 ± 2.0", "92.0 ± 2.0", "87.0 ± 2.0", "82.0 ± 2.0", "77.0 ± 2.0", "72.0 ± 2.0", "57.0 ± 2.0"]
    assert ["MNIST, softmax", "6,000", "1", *wanted] in table
    assert [line[:3] for line in table][-2:] == [["MNIST, 5000 images, softmax, hard space", "2,400", epsilon] for epsilon in ("1", "3")]
    paid = cells(accuracy_table(result_rows(), "paid"))
    assert [line[3] for line in paid] != [line[3] for line in table]


def test_gains_in_points_and_the_share_that_is_beaten():
    table = cells(gains_table(result_rows()))
    assert len(table) == 2 * 3 * 2
    gains = [f"+{gain}.00 (-0.10 to +25.00)" for gain in (5, 10, 15, 20)]
    # A half is rounded to the even digit.
    assert table[0] == ["public", "MNIST, softmax", "2,000", "1", *gains, "88%"]
    assert {line[0] for line in table} == {"public", "paid"}


def test_the_law_and_the_noise_of_each_regime():
    table = cells(laws_table(result_rows()))
    assert table[0][3:] == ["`fixed(k=1)`, 1.000", "`fixed(k=2)`, 1.125", "`fixed(k=3)`, 1.250", "`fixed(k=4)`, 1.375"]


@pytest.fixture
def folder(tmp_path):
    """A repository in small."""
    (tmp_path / STORED).mkdir(parents=True)
    for file, rows in zip(FILES, ([HEADLINE], result_rows(), stage_result_rows(), single_rows()), strict=True):
        (tmp_path / file).write_bytes(as_csv(rows))
    for page, name in zip(PAGES, ("headline-noise", "headline-trials", "accuracy-gains", "two-stages-findings"), strict=True):
        (tmp_path / page).write_text(f"Rényi\n<!-- {name} -->\n<!-- end {name} -->\nthe end\n", encoding="utf-8")
    return tmp_path


def test_every_page_is_filled_from_the_stored_tables(folder):
    main([str(folder)])
    made = tables(folder)
    assert len(made) == 13
    text = (folder / PAGES[0]).read_text(encoding="utf-8")
    assert text == f"Rényi\n<!-- headline-noise -->\n{made['headline-noise']}\n<!-- end headline-noise -->\nthe end\n"
    assert made["accuracy-gains"] in (folder / PAGES[2]).read_text(encoding="utf-8")
    assert made["two-stages-findings"] in (folder / PAGES[3]).read_text(encoding="utf-8")
    before = {page: (folder / page).read_bytes() for page in PAGES}
    main([str(folder)])
    assert {page: (folder / page).read_bytes() for page in PAGES} == before


@pytest.mark.parametrize("missing", [*PAGES, *FILES], ids=str)
def test_a_folder_that_lacks_a_file_is_refused_in_one_sentence_and_no_page_is_touched(folder, capsys, missing):
    (folder / missing).unlink()
    before = {page: (folder / page).read_bytes() for page in PAGES if page != missing}
    with pytest.raises(SystemExit) as end:
        main([str(folder)])
    assert end.value.code == 2
    assert f"error: `folder` must hold {missing}, got '" in capsys.readouterr().err.splitlines()[-1]
    assert {page: (folder / page).read_bytes() for page in before} == before


def test_where_one_page_cannot_be_filled_none_is(folder, capsys):
    (folder / PAGES[2]).write_text("<!-- accuracy-gains -->\n")
    before = (folder / PAGES[0]).read_bytes()
    with pytest.raises(SystemExit):
        main([str(folder)])
    assert "must have the mark <!-- end accuracy-gains -->" in capsys.readouterr().err.splitlines()[-1]
    assert (folder / PAGES[0]).read_bytes() == before
