"""`ppdm init` on generated tables: each rule of the draft, and that no cell is written."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.config.draft.profile import Draft
from flows.config.draft.roles import Drafted
from flows.config.draft.text import Heading, format_release_file
from flows.config.release_file import ReleaseFile
from flows.config.toml_values import format_toml_key, format_toml_value
from ppdm.cli.init import Decided, draft_file, suggest_dataset_name
from ppdm.cli.release_files import read_release_file
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput
from tests.support.small_release import write_csv
from warehouse.columns import Column, Source

ROWS = 120
Cell = Callable[[int], str]
RNG = random.Random(7391)
NOISE = [f"{RNG.gauss(0, 1):.6f}" for _ in range(2 * ROWS)]


def write_table(
    folder: Path, columns: dict[str, Cell], rows: int = ROWS, name: str = "t.csv"
) -> Path:
    """Write a table with a column of measurements and the given columns."""
    made: dict[str, Cell] = {"plain": lambda i: NOISE[i % ROWS], **columns}
    write_csv(folder / name, [{key: cell(i) for key, cell in made.items()} for i in range(rows)])
    return folder / name


def draft_table(source: Path, **options: Any) -> tuple[ReleaseFile, CommandResult, str]:
    """Return the draft as `ppdm release` reads it, the result of the command, and the text."""
    out = source.parent / "draft.toml"
    out.unlink(missing_ok=True)
    result = draft_file(source, out, options.get("table"))
    file, _ = read_release_file(out)
    return file, result, out.read_text()


def read_roles(result: CommandResult) -> dict[str, tuple[str, str]]:
    return {each["name"]: (each["role"], each["why"]) for each in result.payload["columns"]}


COLUMNS: dict[str, tuple[Cell, str, str]] = {
    "number": (lambda i: NOISE[-i], "feature", "numbers"),
    "padded number": (lambda i: f" {NOISE[-i]} ", "feature", "numbers"),
    "some empty": (lambda i: NOISE[-i] if i % 7 else "", "feature", "some cells are empty"),
    "mostly empty": (lambda i: NOISE[-i] if i % 7 == 0 else "", "exclude", "more than half"),
    "all empty": (lambda i: "", "exclude", "empty"),
    "constant": (lambda i: "5", "exclude", "the same value"),
    "constant spelled twice": (lambda i: ("5", "5.0")[i % 2], "exclude", "the same value"),
    "spelled missing": (lambda i: NOISE[-i] if i % 7 else "?", "exclude", "words for missing"),
    "not a number": (lambda i: NOISE[-i] if i % 7 else "nan", "exclude", "NaN or infinity"),
    "infinite": (lambda i: NOISE[-i] if i % 7 else "-inf", "exclude", "NaN or infinity"),
    "separators": (lambda i: f"{1000 + 37 * i:,}", "exclude", "separators"),
    "units": (lambda i: f"{i % 50} kg", "exclude", "units"),
    "huge": (lambda i: f"{i}e300", "exclude", "too large"),
    "tiny": (lambda i: f"{i + 1}e-300", "exclude", "too small"),
    "codes": (lambda i: f"0{1000 + i % 60}", "exclude", "leading zeros"),
    "iso date": (lambda i: f"2021-03-{1 + i % 28}", "exclude", "a date"),
    "german date": (lambda i: f"{1 + i % 28}.3.2021", "exclude", "a date"),
    "us date": (lambda i: f"3/{1 + i % 28}/21", "exclude", "a date"),
    "written date": (lambda i: f"{1 + i % 28} March 2021", "exclude", "a date"),
    "digits date": (lambda i: f"202103{10 + i % 20}", "exclude", "a date"),
    "timestamp": (lambda i: f"2021-03-01T10:{10 + i % 50}:00Z", "exclude", "a date"),
    "clock": (lambda i: f"{i % 24}:30", "exclude", "a date or time"),
    "prose": (lambda i: f"came with pain {i}, left without", "exclude", "free text"),
    "ward": (lambda i: "nsew"[i % 4], "feature", "categories"),
    "flag": (lambda i: "01"[i % 3 // 2], "feature", "categories"),
    "answer": (lambda i: ("true", "false")[i % 2], "feature", "categories"),
    "few codes": (lambda i: f"00{i % 5}", "feature", "categories"),
    "rare words": (lambda i: f"word{i // 3}", "exclude", "group them"),
    "distinct measurements": (lambda i: f"{i * i * 0.37 + 0.01:.3f}", "feature", "numbers"),
    "distinct whole measurements": (lambda i: str(i * i * 37), "feature", "numbers"),
    "serial": (lambda i: str(5000 + i), "identifier", "every value is different"),
    "token": (lambda i: f"t{i * 7919}", "identifier", "every value is different"),
    "patientID": (lambda i: str(i // 2), "identifier", "named like an identifier"),
    "id of visit": (lambda i: f"{i}.5", "identifier", "named like an identifier"),
    "E-Mail": (lambda i: f"p {i}@x.org", "identifier", "named like personal data"),
    "last name": (lambda i: f"von N{i}", "identifier", "named like personal data"),
    "last": (lambda i: NOISE[-i], "feature", "numbers"),
}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReleaseFile, CommandResult, str]:
    cells = {name: cell for name, (cell, _, _) in COLUMNS.items()}
    return draft_table(write_table(tmp_path_factory.mktemp("many"), cells))


@pytest.mark.parametrize("name", COLUMNS)
def test_draft_column_of_each_kind_gets_its_role(
    many: tuple[ReleaseFile, CommandResult, str], name: str
) -> None:
    file, result, _ = many
    _, role, why = COLUMNS[name]
    assert read_roles(result)[name][0] == role == file.columns[name].role
    assert why in read_roles(result)[name][1]


def test_draft_features_have_bounds_from_data(many: tuple[ReleaseFile, CommandResult, str]) -> None:
    features = [spec for spec in many[0].columns.values() if spec.type == "numeric"]
    assert {(spec.low, spec.high) for spec in features} == {("from_data", "from_data")}
    assert many[0].columns["some empty"].missing == "median"
    assert many[0].columns["number"].missing is None


def test_draft_table_without_label_is_complete(
    many: tuple[ReleaseFile, CommandResult, str],
) -> None:
    file, result, text = many
    assert (file.dataset.name, file.dataset.owner, file.dataset.audience) == ("t", "", "")
    assert file.sanitizer.method == "pipeline"
    parts = file.sanitizer_parameters()
    assert parts["numeric"]["gamma"] == parts["categorical"]["gamma"] == {"record": 30}
    assert len(file.audit.required) == 5
    assert {limit.set_by for limit in file.limits.values()} == {""}
    assert all(limit.reason for limit in file.limits.values())
    assert "WEAKER PROMISE" in text and "# [schedule]" in text
    assert max(map(len, text.splitlines())) < 100
    for word in ("owner", "audience", "Bounds", "Excluded", "limits", "schedule", "No label"):
        assert sum(word in each for each in result.payload["decisions"]) == 1, word
        assert word in result.text


SECRET = 7391


def test_draft_secret_cells_are_not_written(tmp_path: Path) -> None:
    """Every cell and every count holds digits that appear nowhere else."""
    rows = 739
    source = write_table(
        tmp_path,
        {
            "key": lambda i: f"{SECRET}{i:06d}",
            "amount": lambda i: f"{SECRET}.{i}" if i % 9 else "",
            "prose": lambda i: f"canary number {SECRET}{i}",
            "ward": lambda i: f"canary{i % 90}",  # eight records each
            "class": lambda i: "canary" if i < 9 else "ab"[i % 2],
        },
        rows,
    )
    source = source.rename(tmp_path / "plain.csv")
    _, result, text = draft_table(source)
    output = text + result.text + json.dumps(result.payload)
    assert str(SECRET) not in output and "canary" not in output and str(rows) not in output
    constants = {
        "1",
        "2",
        "1000",
        "99",
        "40",
        "20",
        "30",
        "0.05",
        "0.1",
        "0.15",
        "10",
        "1100",
        "0",
        "3",
    }
    digits = {word.strip('.,*%"') for word in text.split() if any(c.isdigit() for c in word)}
    assert {each for each in digits if each.replace(".", "").isdigit()} <= constants


@pytest.mark.parametrize(
    ("cells", "categories", "outside", "missing"),
    [
        (lambda i: "ab"[i % 2], ["a", "b"], None, None),
        (lambda i: "rare" if i < 9 else "ab"[i % 2], ["a", "b"], "drop_row", None),
        (lambda i: "rare" if i < 10 else "ab"[i % 2], ["a", "b", "rare"], None, None),
        (lambda i: "" if i < 9 else "ab"[i % 2], ["a", "b"], None, "drop_row"),
        (lambda i: ("1", "1.0", " 1")[i % 3], [" 1", "1", "1.0"], None, None),
        (lambda i: str(i % 3), ["0", "1", "2"], None, None),
        (lambda i: ('<=5 "K"', "it's")[i % 2], ['<=5 "K"', "it's"], None, None),
    ],
)
def test_draft_label_lists_categories_of_enough_records(
    tmp_path: Path, cells: Cell, categories: list[str], outside: str | None, missing: str | None
) -> None:
    file, result, _ = draft_table(
        write_table(tmp_path, {"income": cells, "last": lambda i: NOISE[-i]})
    )
    found = file.columns["income"]
    assert (found.role, found.categories) == ("label", categories)
    assert (found.outside, found.missing) == (outside, missing)
    assert read_roles(result)["income"] == ("label", "named like a class")
    assert "label.rate" in file.limits
    assert "best_accuracy" not in file.limits  # utility that nobody asked for


NO_LABELS: dict[str, Cell] = {
    "one class": lambda i: "a" if i > 5 else "b",
    "too many dropped": lambda i: f"rare {i}" if i % 6 == 0 else "ab"[i % 2],
    "too many classes": lambda i: f"c{i % 40}",
    "fractions": lambda i: ("0.5", "1.5")[i % 2],
    "dates": lambda i: f"2021-01-0{1 + i % 3}",
    "control characters": lambda i: ("a\tb", "c")[i % 2],
}


@pytest.mark.parametrize("case", NO_LABELS)
def test_draft_unfit_column_is_no_label(tmp_path: Path, case: str) -> None:
    source = write_table(tmp_path, {"class": NO_LABELS[case], "last": lambda i: NOISE[-i]})
    assert read_roles(draft_table(source)[1])["class"][0] in ("exclude", "feature")


def test_draft_label_best_name_before_first_or_last_column(tmp_path: Path) -> None:
    def two(i: int) -> str:
        return "ab"[i % 2]

    def label(*names: str) -> str | None:
        result = draft_table(write_table(tmp_path, dict.fromkeys(names, two)))[1]
        return next(
            (name for name, (role, _) in read_roles(result).items() if role == "label"), None
        )

    assert label("ward type", "class", "ward") == "class"
    assert label("ward", "ward type", "last") == "ward type"
    assert label("ward", "last") == "last"
    source = write_table(tmp_path, {"last": lambda i: NOISE[-i]})
    source.write_text(
        "\n".join(
            f"{'hm'[i % 2] if i else 'ward'},{line}"
            for i, line in enumerate(source.read_text().splitlines())
        )
        + "\n"
    )
    assert read_roles(draft_table(source)[1])["ward"][0] == "label"


def test_draft_feature_constant_where_labelled_is_excluded(tmp_path: Path) -> None:
    cells = {"x": lambda i: str(int(i < 5)), "class": lambda i: "" if i < 5 else "ab"[i % 2]}
    assert read_roles(draft_table(write_table(tmp_path, cells))[1])["x"] == (
        "exclude",
        "constant in the rows that are not dropped",
    )


def record_id(folder: Path, columns: dict[str, Cell], rows: int = ROWS) -> tuple[Any, ...]:
    file, _, text = draft_table(
        write_table(folder, {"other": lambda i: NOISE[-i - 1], **columns}, rows)
    )
    parameters = file.sanitizer_parameters()
    assert ("fitted on the released records" in text) == (parameters["basis"] == "private")
    return file.dataset.record_id, parameters["basis"], parameters["components"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"key": lambda i: f"k{i * 7 % 120}"}, "key"),
        ({"key": lambda i: str(i)}, "key"),
        ({"token": lambda i: f"k{i * 7 % 120}"}, "token"),
        ({"token": lambda i: f"k{i * 7 % 120}", "key": lambda i: str(i)}, "key"),
        ({"Unnamed: 0": lambda i: str(i)}, None),
        ({"key": lambda i: str(i // 2)}, None),
        ({"key": lambda i: str(i) if i else ""}, None),
        ({"key": lambda i: f"{i}.5"}, None),
        ({"email": lambda i: f"{i}@x.org"}, None),
        ({"key date": lambda i: f"2021-03-01 {i}"}, None),
    ],
)
def test_draft_record_id_unique_and_stable_is_chosen(
    tmp_path: Path, columns: dict[str, Cell], expected: str | None
) -> None:
    basis = "private" if expected is None else "sample"
    assert record_id(tmp_path, columns) == (expected, basis, 2)


def test_draft_basis_small_table_asks_for_few_components(tmp_path: Path) -> None:
    key: dict[str, Cell] = {"key": lambda i: f"k{i}"}
    assert record_id(tmp_path, key, 30)[1] == "private"  # a fifth of them is too few
    assert record_id(tmp_path, key, 2)[2] == 1
    collinear = {**key, "other": lambda i: f"{2 * float(NOISE[i]) + 1:.6f}"}
    assert record_id(tmp_path, collinear)[1:] == ("sample", 1)
    assert record_id(tmp_path, {"other": lambda i: f"{-float(NOISE[i]):.6f}"})[1:] == ("private", 1)
    # One direction lives in few records, which the fifth that is set aside may lack.
    rare = {**collinear, "flag": lambda i: str(int(i in (3, 5)))}
    assert record_id(tmp_path, rare)[1:] == ("sample", 1)
    source = tmp_path / "one.csv"
    write_csv(source, [{"key": f"k{i}", "flag": str(int(i in (3, 5)))} for i in range(ROWS)])
    assert draft_table(source)[0].sanitizer_parameters()["basis"] == "private"


def test_draft_native_types_and_odd_names_are_read(tmp_path: Path) -> None:
    odd = ["new\nline", "do.t", 'quo"te', "it's", "☃ 🩺", "日本", "\u007f", "# x = 1", "a]b"]
    types = {
        "list": "[i, 2]",
        "struct": "{'a': i}",
        "blob": "encode(i::varchar)",
        "flag": "i % 2 = 0",
        "day": "date '2021-01-01' + i::integer",
        "instant": "timestamp '2021-01-01' + to_hours(i::integer)",
        "money": "(i * 7 % 113 / 4)::decimal(9, 2)",
        "big": "(i * i)::hugeint",
        "float_id": "i::double",
        "uid": "uuid()",
        **dict.fromkeys(odd, "random()"),
        "end": "random()",
    }
    names = ", ".join(
        f'{sql} as "{name.replace(chr(34), chr(34) * 2)}"' for name, sql in types.items()
    )
    source = tmp_path / "t.parquet"
    duckdb.sql(f"select {names} from range({ROWS}) r(i)").write_parquet(str(source))
    file, result, _ = draft_table(source)
    assert list(read_roles(result)) == list(types)
    excluded = {name for name, spec in file.columns.items() if spec.role == "exclude"}
    assert excluded == {"list", "struct", "blob", "day", "instant"}
    assert file.columns["flag"].categories == ["false", "true"]
    assert file.dataset.record_id == "uid"
    assert all(file.columns[name].role == "feature" for name in ["money", "big", *odd])
    assert file.columns["float_id"].role == "identifier"
    assert "new line" in result.text and "and 5 more" in result.text


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


def read_error(source: Path, table: str | None = None, out: str = "draft.toml") -> BadInput:
    before = sorted(source.parent.iterdir())
    with pytest.raises(BadInput) as caught:
        draft_file(source, source.parent / out, table)
    assert sorted(source.parent.iterdir()) == before
    assert caught.value.remedy and "canary" not in str(caught.value)
    return caught.value


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
    assert "is not a file" in read_error(tmp_path).message
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
    assert suggest_dataset_name(name) == expected


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@settings(deadline=None, max_examples=50)
@given(TEXT, TEXT)
def test_format_toml_any_string_is_read_back(key: str, value: str) -> None:
    assert tomllib.loads(f"{format_toml_key(key)} = {format_toml_value(value)}") == {key: value}


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXT, min_size=4, unique=True), st.lists(TEXT, min_size=2, unique=True), TEXT)
def test_format_release_file_any_names_are_valid_toml(
    names: Sequence[str], classes: Sequence[str], path: str
) -> None:
    label = Column(names[0], "label", "categorical", categories=tuple(classes), outside="drop_row")
    feature = Column(names[1], "feature", "numeric", "from_data", "from_data", missing="median")
    others = [Column(name, "exclude") for name in names[3:]]
    columns = (label, feature, Column(names[2], "identifier"), *others)
    draft = Draft(tuple(Drafted(each, "a reason") for each in columns), names[2], "sample", 1)
    heading = Heading(
        "t", path, names[0], classes[0], Source("duckdb", path, {"table": names[0]}), path
    )
    content = tomllib.loads(format_release_file(draft, heading))
    assert content["columns"].keys() == set(names)
    assert content["columns"][names[0]]["categories"] == list(classes)
    assert content["columns"][names[1]]["missing"] == "median"
    assert (content["source"]["path"], content["dataset"]["record_id"]) == (path, names[2])
    assert content["dataset"].get("owner", "") == path
    assert content["dataset"].get("audience", "") == names[0]
    assert {one.get("set_by", "") for one in content["limits"].values()} == {classes[0]}


def test_draft_decisions_given_written_and_no_longer_listed(tmp_path: Path) -> None:
    source, out = tmp_path / "t.csv", tmp_path / "t.toml"
    rows = [f"{i * 37 % 101},{i % 7},{'xy'[i % 2]}" for i in range(200)]
    source.write_text("\n".join(["a,b,c", *rows]))
    result = draft_file(source, out, None, Decided("registry", "partners", "DPO", "c"))
    file, _ = read_release_file(out)
    assert (file.dataset.owner, file.dataset.audience) == ("registry", "partners")
    assert {limit.set_by for limit in file.limits.values()} == {"DPO"}
    assert file.columns["c"].role == "label"
    assert not any("owner" in each or "set_by" in each for each in result.payload["decisions"])


@pytest.mark.parametrize(("label", "words"), [("d", "no column 'd'"), ("a", "cannot be the label")])
def test_draft_label_of_other_columns_bad_input(tmp_path: Path, label: str, words: str) -> None:
    source, out = tmp_path / "t.csv", tmp_path / "t.toml"
    rows = [f"{i * 37 % 101},{i % 7},{'xy'[i % 2]}" for i in range(200)]
    source.write_text("\n".join(["a,b,c", *rows]))
    with pytest.raises(BadInput, match=words):
        draft_file(source, out, None, Decided(label=label))
    assert not out.exists()


def test_init_command_imports_nothing_slow(tmp_path: Path) -> None:
    source = write_table(tmp_path, {"class": lambda i: "ab"[i % 2]})
    code = (
        "import sys\nfrom ppdm.cli.app import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    code = end.code\n"
        "heavy = {'prefect', 'mlflow', 'great_expectations', 'pandas', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)), code)"
    )
    command = ["init", str(source), "--out", str(tmp_path / "a.toml"), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    result, end = done.stdout.splitlines()
    assert end == "[] 0"
    payload = json.loads(result)
    assert payload["ok"] and payload["file"].endswith("a.toml") and payload["decisions"]
    assert payload["columns"][1] == {"name": "class", "role": "label", "why": "named like a class"}


@pytest.mark.parametrize(
    ("head", "cells", "method"),
    [
        ("x,y", lambda i: f"{i * 37 % 101},{i * 53 % 97}", "pca_laplace"),
        ("c,class", lambda i: f"{'abc'[i % 3]},{'xy'[i % 2]}", "randomized_response"),
        ("x,c,y", lambda i: f"{i * 37 % 101},{'abc'[i % 3]},{i * 53 % 97}", "pipeline"),
    ],
)
def test_draft_method_suits_kinds_of_columns(
    tmp_path: Path, head: str, cells: Cell, method: str
) -> None:
    source = tmp_path / "t.csv"
    source.write_text("\n".join([f"key,{head}", *(f"k{i},{cells(i)}" for i in range(300))]))
    file, _, _ = draft_table(source)
    assert file.sanitizer.method == method


def test_draft_rare_categories_collected_as_other(tmp_path: Path) -> None:
    cells = {
        "x": lambda i: str(i * 37 % 101),
        "c": lambda i: "" if i < 3 else "rare" if i < 9 else "ab"[i % 2],
        "class": lambda i: "xy"[i % 2],
    }
    file, _, text = draft_table(write_table(tmp_path, cells))
    spec = file.columns["c"]
    assert (spec.categories, spec.outside, spec.missing) == (["a", "b"], "other", "keep")
    assert "rare" not in text
