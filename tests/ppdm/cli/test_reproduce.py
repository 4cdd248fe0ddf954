from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.app import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the command without a server: all of these inputs are refused before."""
    with pytest.raises(SystemExit) as end:
        main(["reproduce", *arguments, "--json"])
    assert isinstance(end.value.code, int)
    return end.value.code, json.loads(capsys.readouterr().out)["error"]


def test_reproduce_without_data_names_files_and_origins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(tmp_path / "none"))
    code, error = run(capsys, "--claim", "P0.C3", "--home", str(tmp_path / "home"))
    assert code == 2
    assert "wine.csv (UCI Wine, wine.data; also in scikit-learn)" in error["message"]
    assert "PPDM_DATA" in error["remedy"]
    assert not (tmp_path / "home").exists()


def test_reproduce_without_a_checkout_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "studies.reproduction.registry", None)
    code, error = run(capsys)
    assert code == 2
    assert "needs a checkout" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("P9",), "P9"), (("--claim", "P0.C999"), "P0.C999"), (("--processes", "0"), "--processes")],
)
def test_reproduce_with_a_wrong_argument_names_it(
    arguments: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = run(capsys, *arguments)
    assert code == 2
    assert named in error["message"]
