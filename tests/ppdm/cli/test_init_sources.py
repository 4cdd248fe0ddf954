"""`ppdm init`: kinds of sources, and tables that it cannot draft."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pytest

from ppdm.cli.init import draft_file, suggest_dataset_name
from ppdm.cli.release_files import read_release_file
from ppdm_core.model.errors import BadInput
from tasks.ingest.source_check import check_source
from tests.support.drafts import NOISE, draft_table, read_error, write_table
from warehouse.columns import Source


@pytest.mark.extended
def test_draft_every_kind_of_source_gives_the_same(tmp_path: Path) -> None:
    source = write_table(tmp_path, {"x": lambda i: str(i % 7)})
    text = source.read_bytes()
    for name, content, kind in (
        ("a.csv.gz", gzip.compress(text), "csv"),
        ("a.tsv", text.replace(b",", b"\t"), "csv"),
        ("a.data", text.replace(b",", b";"), "csv"),
        ("a.data.gz", gzip.compress(text), "csv"),
    ):
        (tmp_path / name).write_bytes(content)
        assert draft_table(tmp_path / name)[0].source.kind == kind
    whole = duckdb.sql(f"select * from read_csv('{source}')")
    whole.write_parquet(str(tmp_path / "b.parquet"))
    (tmp_path / "b.parquet").rename(tmp_path / "b.bin")
    assert draft_table(tmp_path / "b.bin")[0].source.kind == "parquet"
    for name in ("c.duckdb", "c.bin"):
        with duckdb.connect(str(tmp_path / name)) as db:
            db.execute(f"create table t as select * from read_csv('{source}')")
        file = draft_table(tmp_path / name)[0]
        assert (file.source.kind, file.source.table) == ("duckdb", "t")


def test_draft_duckdb_file_needs_a_table_if_several(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("create view v as select 1 as canary")
    assert "has no table" in read_error(path).message
    with duckdb.connect(str(path)) as db:
        db.execute("create table one as select random() as x from range(9)")
        db.execute("create schema s; create table s.two as select random() as y from range(9)")
    assert "Choose one with --table: one, s.two." in str(read_error(path))
    assert "'three' is not in" in read_error(path, "three").message
    assert list(draft_table(path, table="s.two")[0].columns) == ["y"]
    (tmp_path / "draft.toml").unlink()
    assert "Leave --table out" in str(read_error(write_table(tmp_path, {}), "one"))


HEADERLESS = {
    "numbers": "5.1,3.5\n4.9,3.0\n4.7,3.2\n",
    "numbers and a class": "5.1,3.5,canary\n4.9,3.0,canary\n4.7,3.2,b\n",
    "words": "canary,north\ncanary,south\nb,north\n",
}


@pytest.mark.parametrize("case", HEADERLESS)
def test_draft_table_without_header_raises(tmp_path: Path, case: str) -> None:
    (tmp_path / "t.csv").write_text(HEADERLESS[case])
    assert "seems to have no header" in read_error(tmp_path / "t.csv").message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n", "a header but no rows"),
        ("a,b\n1,2\n", "only one row"),
        ("", "is empty"),
        ("a,,c\n1,2,3\n4,5,6\n", "Column 2 of t.csv has no name"),
        ("a,A\n1,2\n4,5\n", "have the same name"),
        ("é,É\n1,2\n4,5\n5,9\n", "differ only in case"),
        ("a,b\ncanary,x\nother,y\n", "none has numbers that vary"),
        ("a,b\n1,2\n1,2\n", "none has numbers that vary"),
    ],
)
def test_draft_unusable_table_raises(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert words in read_error(tmp_path / "t.csv").message


def test_draft_unusable_file_raises(tmp_path: Path) -> None:
    source = write_table(tmp_path, {})
    assert "does not exist" in read_error(tmp_path / "none.csv").message
    (tmp_path / "empty").mkdir()
    assert "No file is found" in read_error(tmp_path / "empty").message
    (tmp_path / "x.bin").write_bytes(b"\0\1canary" * 50)
    assert "not known to be a table" in read_error(tmp_path / "x.bin").message
    assert "folder of draft.toml does not exist" in read_error(source, out="no/draft.toml").message
    (tmp_path / "draft.toml").write_text("mine")
    assert "exists already" in read_error(source).message
    assert (tmp_path / "draft.toml").read_text() == "mine"


def test_draft_path_of_close_source_is_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    source = write_table(tmp_path / "data", {})
    monkeypatch.chdir(tmp_path)
    for folder, path in ((".", "data/t.csv"), ("a", "../data/t.csv"), ("a/b", str(source))):
        draft_file(Path("data/t.csv"), Path(folder) / "draft.toml", None)
        assert read_release_file(Path(folder) / "draft.toml")[0].source.path == path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/x/wdbc.csv", "wdbc"),
        ("/x/My Table (2021).CSV.gz", "my_table_2021"),
        ("/x/2021.parquet", "table_2021"),
        ("/x/日本.csv", "table"),
        ("/x/" + "long_" * 20 + ".csv", ("long_" * 8)[:39]),
    ],
)
def test_suggest_dataset_name_any_file_name_is_valid(name: str, expected: str) -> None:
    assert suggest_dataset_name(Source("csv", f"/data/{name}")) == expected


def test_init_words_for_missing_numbers_are_empty_cells(tmp_path: Path) -> None:
    words = ("NA", "n/a")
    cells = {
        "x": lambda i: NOISE[-i] if i % 9 else words[i % 2],
        "y": lambda i: NOISE[i],
        "answer": lambda i: ("yes", "no", "NA")[i % 3],
    }
    file, _, _ = draft_table(write_table(tmp_path, cells))
    assert file.source.options == {"empty": "NA|n/a"}
    assert file.columns["x"].missing == "median"
    assert file.columns["answer"].categories == ["no", "yes"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Source("csv", "/data/visits/*.csv"), "visits"),
        (Source("parquet", "/data/Visits 2024/"), "visits_2024"),
        (Source("csv", "s3://bucket/visits/day.csv"), "day"),
        (Source("postgresql", "", {"table": "clinic.visits"}), "visits"),
    ],
)
def test_suggest_dataset_name_folder_and_table_named(source: Source, expected: str) -> None:
    assert suggest_dataset_name(source) == expected


@pytest.mark.extended
def test_init_folder_drafts_file_that_check_accepts(tmp_path: Path) -> None:
    (tmp_path / "visits").mkdir()
    for part in range(3):
        rows = "".join(f"{part * 40 + i},{(i * 37) % 90 + 10},{i * 1.5}\n" for i in range(40))
        (tmp_path / "visits" / f"{part}.csv").write_text(f"id,age,cost\n{rows}")
    out = tmp_path / "r.toml"
    draft_file(tmp_path / "visits", out, None)
    assert 'path = "visits"' in out.read_text()
    _, context = read_release_file(out)
    assert check_source(context)["rows"] == 120


def write_sheet(path: Path, header_row: int, *, second: str | None = None) -> None:
    """Write a sheet as people make them: a merged title, and an empty column."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for column, name in ((1, "patient"), (3, "score"), (4, "relapse")):
        sheet.cell(header_row, column, name)
        for i in range(60):
            cells = {"patient": f"P{i:03d}", "score": 0.5 * i, "relapse": ("no", "yes")[i % 2]}
            sheet.cell(header_row + 1 + i, column, cells[name])
    sheet["A1"] = "Relapse study"
    sheet.merge_cells("A1:D1")  # which empties all but the first cell
    if second:
        book.create_sheet(second)
    book.save(path)


def test_draft_file_sheet_with_title_row_of_names_found(tmp_path: Path) -> None:
    write_sheet(tmp_path / "study.xlsx", 3)
    draft_file(tmp_path / "study.xlsx", tmp_path / "study.toml", None)
    text = (tmp_path / "study.toml").read_text()
    assert 'header_row = "3"' in text and "P001" not in text


def test_draft_file_merged_names_one_sentence_without_cells(tmp_path: Path) -> None:
    write_sheet(tmp_path / "study.xlsx", 1)  # the title is in place of the first name
    with pytest.raises(BadInput, match="not a header") as caught:
        draft_file(tmp_path / "study.xlsx", tmp_path / "study.toml", None)
    assert "P001" not in str(caught.value)


def test_draft_file_several_sheets_chosen_as_a_table(tmp_path: Path) -> None:
    write_sheet(tmp_path / "study.xlsx", 3, second="Notes")
    with pytest.raises(BadInput, match="several sheets"):
        draft_file(tmp_path / "study.xlsx", tmp_path / "study.toml", None)
    draft_file(tmp_path / "study.xlsx", tmp_path / "study.toml", "Sheet")
    assert 'sheet = "Sheet"' in (tmp_path / "study.toml").read_text()
