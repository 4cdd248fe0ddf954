"""The Python API and the installed command, used from a folder with other modules in it."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ppdm
from tests.support.policies import QUICK
from tests.support.small_release import FEATURES, Small, small_rows

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
BLOCK = re.compile(r"^## In Python\n+```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A module of this kind in the working folder is what a notebook next to other projects finds.
PLANTED = "import pathlib\npathlib.Path({mark!r}).touch()\nraise RuntimeError('planted')\n"
SCRIPT = """
import sys
import ppdm

report = ppdm.audit("patients.csv", "noisy.csv", policy="quick.toml")
assert report.verdict == "FAIL", report
assert ppdm.verify("fixture", "fixture.pem").is_checked
release = ppdm.load("fixture", "fixture.pem")
release.make_miner("knn").fit(release.rows, release.labels)
try:
    ppdm.release("without_table.toml")
except ppdm.BadInput as error:
    assert "without_table.csv" in str(error), error
else:
    raise AssertionError("a release without a table")
assert sys.path[0] == {folder!r}
"""
RELEASE = """
import ppdm

result = ppdm.release("patients.toml", show_progress=True)
assert (result.stage, result.is_published) == ("published", True), result
assert ppdm.load(result.folder).manifest["release_id"] == result.release_id
"""


@pytest.fixture
def patients(small: Callable[..., Small], monkeypatch: pytest.MonkeyPatch) -> Small:
    """Write a release file with its table, and a bad release of it, into the working folder.

    An audit of another table in the same home has tested the attacks, so that no test does.
    """
    other = small("other", small_rows(seed=2)).write()
    assert other.run("attack shadows", entry="prepared").exit_code == 0
    release = small("patients").write()
    table = (
        pd.DataFrame(release.rows).drop(columns=["notes"]).astype(dict.fromkeys(FEATURES, float))
    )
    table[list(FEATURES)] += 0.001
    table.to_csv(release.folder / "noisy.csv", index=False)
    monkeypatch.chdir(release.folder)
    return release


def export_key(release: Small) -> None:
    assert release.ask("key", "public", "--out", str(release.folder / "steward.pem")).exit_code == 0


@pytest.mark.slow
def test_release_docstring_and_readme_run_as_shown(patients: Small) -> None:
    (test,) = doctest.DocTestFinder(recurse=False).find(
        ppdm.release, "release", module=False, globs={"ppdm": ppdm}
    )
    printed: list[str] = []
    doctest.DocTestRunner().run(test, out=printed.append)
    assert printed == [] and len(test.examples) >= 2
    export_key(patients)
    (block,) = BLOCK.findall((ROOT / "README.md").read_text())
    names: dict[str, Any] = {"own": {name: [3.0, 7.0] for name in FEATURES}}
    exec(block, names)
    assert names["report"].verdict == "FAIL"
    assert names["result"].stage == "no_change"  # since the release of the docstring
    assert names["found"].is_checked


@pytest.mark.slow
def test_refused_release_is_a_result(patients: Small) -> None:
    patients.strict().write()
    result = ppdm.release(patients.file)
    assert (result.stage, result.verdict, result.folder) == ("refused", "FAIL", None)
    assert result.reason and not result.is_published
    assert any(finding.outcome == "FAIL" for finding in result.findings)
    rehearsed = ppdm.release(patients.file, dry_run=True)
    assert rehearsed.release_id != result.release_id and not rehearsed.is_published


@pytest.fixture
def planted(patients: Small) -> Path:
    """Plant modules with the names of ours; return the path that they create when imported."""
    folder = patients.folder
    mark = folder / "imported"
    for path in ("flows/__init__.py", "tasks.py", "warehouse/__init__.py"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(PLANTED.format(mark=str(mark)))
    return mark


@pytest.mark.slow
def test_api_and_command_other_modules_in_folder_not_imported(
    patients: Small, planted: Path
) -> None:
    folder = patients.folder
    shutil.copytree(FIXTURES / "published", folder / "fixture")
    shutil.copy(FIXTURES / "published.pem", folder / "fixture.pem")
    (folder / "quick.toml").write_text(QUICK)
    text = patients.file.read_text().replace("patients.csv", "without_table.csv")
    (folder / "without_table.toml").write_text(text)
    (folder / "script.py").write_text(SCRIPT.format(folder=str(folder)))
    run(sys.executable, "script.py")
    command = str(Path(sys.executable).with_name("ppdm"))
    pair = ("--original", "patients.csv", "--released", "noisy.csv")
    run(command, "audit", *pair, "--policy", "quick.toml", code=3)
    assert not planted.exists()
    run(sys.executable, "-c", "import tasks", code=1)
    assert planted.exists()  # so that the check above can fail


@pytest.mark.slow
def test_release_other_modules_in_folder_published(patients: Small, planted: Path) -> None:
    (patients.folder / "script.py").write_text(RELEASE)
    run(sys.executable, "script.py")
    command = str(Path(sys.executable).with_name("ppdm"))
    run(command, "check", "patients.toml")
    run(command, "status")
    assert not planted.exists()


def run(*command: str, code: int = 0) -> None:
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
