"""The Python API: what its docstrings show, what it imports, and how it fails."""

from __future__ import annotations

import ast
import doctest
import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ppdm
from ppdm import release_process
from ppdm.cli.audit import audit_release
from ppdm.cli.replies.releases import FindingBody
from ppdm.policies import load_policy
from ppdm.release_process import JudgedCheck
from ppdm.table_files import read_table
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.manifest import NAME, parse_manifest, seal
from tests.support.policies import QUICK

FIXTURES = Path(__file__).parents[1] / "fixtures"
OF_PIPELINE = {"flows", "tasks", "warehouse", "prefect", "mlflow", "great_expectations", "duckdb"}
SECRET = "731.25"  # a cell that no message may hold


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write what the examples of the docstrings use into the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FIXTURES / "published", "published/small/0001")
    shutil.copy(FIXTURES / "published.pem", "steward.pem")
    Path("quick.toml").write_text(QUICK)
    return tmp_path


@pytest.fixture
def original() -> pd.DataFrame:
    values = np.random.default_rng(5).gamma(2.0, 1.0, (60, 3)) * [1.0, 40.0, 1000.0]
    return pd.DataFrame(values, columns=["a", "b", "c"])


@pytest.mark.parametrize("name", ["audit", "load", "verify"])
def test_docstring_example_runs_as_shown(name: str, folder: Path, original: pd.DataFrame) -> None:
    (test,) = doctest.DocTestFinder(recurse=False).find(
        getattr(ppdm, name), name, module=False, globs={"ppdm": ppdm, "original": original}
    )
    assert len(test.examples) >= 2
    printed: list[str] = []
    doctest.DocTestRunner().run(test, out=printed.append)
    assert printed == []


def test_import_ppdm_loads_nothing_else() -> None:
    code = "import sys, ppdm\nprint(sorted(m for m in sys.modules if m.startswith('ppdm')))"
    assert run_python(code) == ["ppdm"]


@pytest.mark.slow
def test_api_used_pipeline_not_imported(folder: Path, original: pd.DataFrame) -> None:
    original.to_csv("A.csv", index=False)
    code = (
        "import sys, ppdm\n"
        "ppdm.audit('A.csv', 'A.csv', policy='quick.toml')\n"
        "release = ppdm.load('published/small/0001', 'steward.pem')\n"
        "release.make_miner('knn').fit(release.rows, release.labels)\n"
        f"print(sorted({OF_PIPELINE!r} & set(sys.modules)))"
    )
    assert run_python(code) == []


def run_python(code: str) -> Any:
    """Run Python code in a new process, and return the list that it prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


def test_public_names_all_found() -> None:
    assert all(callable(getattr(ppdm, name)) for name in ppdm.__all__)
    assert not hasattr(ppdm, "publish")


@pytest.mark.extended
def test_audit_files_same_scores_as_command(folder: Path, original: pd.DataFrame) -> None:
    noisy = original + np.random.default_rng(6).normal(0.0, 0.5, original.shape)
    original.to_csv("A.csv", index=False)
    noisy.to_parquet("B.parquet")
    report = ppdm.audit("A.csv", Path("B.parquet"), policy="quick.toml")
    command = audit_release(Path("A.csv"), Path("B.parquet"), policy=Path("quick.toml"))
    assert report.verdict == command.payload["verdict"]
    assert [score.value for score in report.scores] == [
        score["value"] for score in command.payload["scores"]
    ]
    assert dict(report.not_run) == command.payload["not_run"]
    frames = ppdm.audit(original, noisy, policy=load_policy(Path("quick.toml")))
    assert frames.scores == report.scores
    assert report.to_frame().loc["record_linkage.rate", "value"] == report.scores[0].value
    assert report.find_score("record_linkage.rate") == report.scores[0]
    assert report.find_score("nothing") is None


MIXED = {
    "a": ["1", "2.5", "", "4"],
    "town": ["Ulm", "", "Ulm", "Bonn"],
    "day": ["2024-01-01", "2024-01-02", "", ""],
    "flag": ["true", "false", "true", "true"],
    "class": ["0", "1", "0", "1"],
    "mostly": ["1", "2", "3", SECRET + "x"],
}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_read_table_same_columns_as_command(folder: Path, ending: str) -> None:
    from ppdm.cli.table_audit import read_table as read_by_command

    frame, path = pd.DataFrame(MIXED), Path(f"table{ending}")
    if ending == ".parquet":
        frame = frame.assign(
            a=pd.to_numeric(frame["a"]),
            day=pd.to_datetime(frame["day"]).dt.date,
            flag=frame["flag"] == "true",
        )
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ";")
    found, expected = read_table(path, "class"), read_by_command(str(path), "class")
    assert found.numeric() == expected.numeric() == ["a", "mostly"]
    for name in ("a", "mostly"):
        assert np.array_equal(found.columns[name], expected.columns[name], equal_nan=True)
    for name in ("town", "day", "class"):
        assert found.columns[name].tolist() == expected.columns[name].tolist()


BAD_FILES = {
    "missing.csv": None,
    "table.xlsx": b"a,b\n1,2\n",
    "bad.parquet": f"a,b\n{SECRET},2\n".encode(),
    "wide.csv": f"a,b\n{SECRET},2,3,4\n1,2\n".encode(),
    "narrow.csv": f"a,b\n{SECRET},2\n1\n".encode(),
    "twice.csv": b"a,a\n1,2\n",
    "binary.csv": b"a,b\n\xff\xfe,2\n",
    "empty.csv": b"",
    "cut.csv.gz": b"\x1f\x8b\x08",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_audit_unreadable_file_bad_input(folder: Path, name: str) -> None:
    content = BAD_FILES[name]
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(ppdm.BadInput) as error:
        ppdm.audit(name, name, policy="quick.toml")
    assert name in str(error.value) and error.value.file == name and error.value.remedy
    assert SECRET not in str(error.value)


def test_audit_missing_policy_bad_input(folder: Path, original: pd.DataFrame) -> None:
    with pytest.raises(ppdm.BadInput, match=r"policy file does not exist\. Check the path"):
        ppdm.audit(original, original, policy="none.toml")
    with pytest.raises(ppdm.BadInput, match="cannot be read"):
        ppdm.audit(original, original, policy=folder)


def test_load_changed_byte_refused(folder: Path) -> None:
    card = folder / "published" / "small" / "0001" / "card.md"
    card.write_text(card.read_text() + " ")
    for read in (ppdm.load, ppdm.verify):
        with pytest.raises(ppdm.Refused, match=r"card\.md was changed"):
            read(card.parent)


def test_load_without_key_not_checked(folder: Path) -> None:
    release = ppdm.load("published/small/0001/manifest.json")
    assert (release.is_checked, release.signer) == (
        False,
        ppdm.verify("published/small/0001").signer,
    )
    with pytest.raises(ppdm.BadInput, match="not a public key"):
        ppdm.load("published/small/0001", "quick.toml")


@pytest.mark.parametrize("field", ["public", "scaling", "features"])
def test_load_manifest_of_other_format_bad_input(folder: Path, field: str) -> None:
    path = folder / "published" / "small" / "0001" / NAME
    body = parse_manifest(path, path.read_bytes())
    for name in ("digest", "signature", field):
        del body[name]
    path.write_bytes(seal(body))
    with pytest.raises(ppdm.BadInput, match=r"cannot be loaded.* another format"):
        ppdm.load(path.parent)


def test_loaded_release_columns_selected_by_name(folder: Path) -> None:
    release = ppdm.load("published/small/0001")
    names = release.published.numeric
    own = np.random.default_rng(7).uniform(0.0, 10.0, (5, len(names)))
    frame = pd.DataFrame(own, columns=names)
    assert np.array_equal(release.queries(frame[list(names[::-1])]), release.queries(own))
    with pytest.raises(ppdm.BadInput, match=f"Column '{names[1]}' is missing"):
        release.queries(frame.drop(columns=names[1]))
    assert np.array_equal(release.rows, release.table[["component_1"]].to_numpy())
    assert release.labels is not None and set(release.labels) == {"calm", "tense"}


def test_make_miner_unknown_or_not_applicable_raises(folder: Path) -> None:
    release = ppdm.load("published/small/0001")
    with pytest.raises(ppdm.BadInput, match="Did you mean 'kmeans'"):
        release.make_miner("kmean")
    with pytest.raises(NotApplicable, match="no randomized responses"):
        release.make_miner("frequencies")
    assert release.make_miner("kmeans", 2, random_state=0).fit(release.rows).n_clusters == 2


@pytest.mark.extended
def test_release_bad_file_error_of_command(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    with pytest.raises(ppdm.BadInput, match="does not exist") as error:
        ppdm.release(file)
    assert (error.value.file, error.value.exit_code) == (str(file), 2)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bad_input", ppdm.BadInput),
        ("refused", ppdm.Refused),
        ("undecided", ppdm.Undecided),
        ("machine", ppdm.MachineTrouble),
        ("defect", ppdm.Defect),
    ],
)
def test_release_error_without_result_raised_by_kind(
    kind: str, expected: type[ppdm.PpdmError], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"message": "N.", "file": "f", "column": None, "remedy": "S."}
    error = {"message": "M.", "file": "f", "column": "c", "remedy": "R."}
    error |= {"kind": kind, "others": [other]}
    reply_with(monkeypatch, json.dumps({"ok": False, "exit_code": 1, "error": error}))
    with pytest.raises(expected) as raised:
        ppdm.release("x.toml")
    assert raised.value.as_dict() == error


def test_release_killed_command_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    reply_with(monkeypatch, "")
    with pytest.raises(ppdm.Defect, match="exit code 7 and without a result"):
        ppdm.release("x.toml")


def reply_with(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """Run a command that prints the output and ends with exit code 7."""
    script = f"import sys; sys.stdout.write({output!r}); sys.exit(7)"
    run = subprocess.run
    monkeypatch.setattr(
        release_process.subprocess,
        "run",
        lambda command, **options: run([command[0], "-c", script], **options),
    )


CONSUMER = """
import pandas as pd
import ppdm

report: ppdm.Report = ppdm.audit(pd.DataFrame(), "released.csv", known_records=3)
verdict: str = report.verdict
values: list[float] = [score.value for score in report.scores]
result = ppdm.release("patients.toml", dry_run=True)
if result.folder is not None:
    loaded = ppdm.load(result.folder, "steward.pem")
    shape: tuple[int, ...] = loaded.rows.shape
    checked: bool = ppdm.verify(result.folder).is_checked
wrong: int = result.findings[0].outcome
ppdm.audit(1, 2, alligned=True)
"""


@pytest.mark.slow
def test_consumer_checked_by_mypy_finds_types(tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_text(CONSUMER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "consumer.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    ours = [line for line in errors if '"pandas"' not in line]  # it has no stubs
    assert len(ours) == 2, done.stdout
    assert "variable has type" in ours[0] and '"alligned"' in ours[1]


def test_judged_check_has_every_field_of_the_reply() -> None:
    assert {field.name for field in fields(JudgedCheck)} == set(FindingBody.model_fields)
