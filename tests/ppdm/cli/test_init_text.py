"""`ppdm init`: the text of the draft, which holds no cell, and what is left to decide."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.config.draft.method import MethodDraft
from flows.config.draft.profile import Draft
from flows.config.draft.roles import Drafted
from flows.config.draft.text import Heading, format_release_file
from flows.config.toml_values import format_toml_key, format_toml_value
from ppdm.cli.init import Decided, draft_file
from ppdm.cli.release_files import read_release_file
from tests.support.drafts import draft_table, write_table
from warehouse.columns import Column, Source

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
    drafted = tuple(Drafted(each, "a reason") for each in columns)
    source = Source("duckdb", path, {"table": names[0]})
    draft = Draft(source, drafted, names[2], "sample", 1, MethodDraft("pca_laplace"))
    heading = Heading("t", path, names[0], classes[0], source, path)
    content = tomllib.loads(format_release_file(draft, heading))
    assert content["columns"].keys() == set(names)
    assert content["columns"][names[0]]["categories"] == list(classes)
    assert content["columns"][names[1]]["missing"] == "median"
    assert (content["source"].get("path", ""), content["dataset"]["record_id"]) == (path, names[2])
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


@pytest.mark.extended
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
