"""The report of an audit of two tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ppdm.cli.audit import audit_release
from ppdm_core.model.errors import BadInput
from tests.support.policies import QUICK

SECRET = 731.25  # a cell that no report may hold


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(5).gamma(2.0, 1.0, (60, 3)) * [1.0, 40.0, 1000.0]
    values[3, 1] = SECRET
    table = pd.DataFrame(values, columns=["a", "b", "c"])
    table.to_csv("A.csv", index=False)
    table.to_csv("B.csv", index=False)
    Path("quick.toml").write_text(QUICK)
    return tmp_path


@pytest.mark.slow
def test_audit_report_copy_of_original_explains_refusal(folder: Path) -> None:
    page = folder / "audit.html"
    result = audit_release(
        Path("A.csv"), Path("B.csv"), policy=Path("quick.toml"), report_file=page
    )
    text = page.read_text()
    assert result.exit_code == 3 and "<title>B.csv: FAIL</title>" in text
    assert "all persons were found" in text and "Do not hand out this file" in text
    assert str(SECRET) not in text
    for absent in ("All releases of this dataset", "What happened to the data", "ppdm verify"):
        assert absent not in text


@pytest.mark.parametrize("name", ["A.csv", "audit.txt", "none/audit.html"])
def test_audit_report_bad_file_refused_before_the_attacks(folder: Path, name: str) -> None:
    with pytest.raises(BadInput):
        audit_release(Path("A.csv"), Path("none.csv"), report_file=folder / name)
