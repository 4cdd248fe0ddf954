from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ppdm.cli.release_ids import pick_latest
from ppdm.cli.verify import find_version
from ppdm_core.model.errors import BadInput
from warehouse.database import Run
from warehouse.stages import Stage


def make_run(dataset: str, number: int) -> Run:
    started = datetime(2026, 1, number, tzinfo=UTC)
    name = f"{dataset}-{number:04d}"
    return Run(name, dataset, number, "s", "f", "c", Stage.REFUSED, 1, None, started)


def test_pick_latest_one_dataset_newest_number() -> None:
    runs = [make_run("wine", 10), make_run("wine", 2)]
    assert pick_latest(runs, "").release_id == "wine-0010"


def test_pick_latest_several_datasets_needs_a_name() -> None:
    runs = [make_run("wine", 1), make_run("iris", 2)]
    with pytest.raises(BadInput, match=r"2 datasets.*wine/latest or iris/latest"):
        pick_latest(runs, "")
    assert pick_latest(runs, "wine").release_id == "wine-0001"
    with pytest.raises(BadInput, match=r"There is no dataset 'wein'.*'wine'"):
        pick_latest(runs, "wein")


def test_pick_latest_no_run_bad_input() -> None:
    with pytest.raises(BadInput, match="no release here yet"):
        pick_latest([], "")


def test_find_version_names_of_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    published = tmp_path / "home" / "published"
    (published / "wine" / "0001").mkdir(parents=True)
    home = tmp_path / "home"
    assert find_version("latest", home) == published / "wine" / "latest"
    assert find_version("wine/latest", home) == published / "wine" / "latest"
    assert find_version("wine-0001", home) == published / "wine" / "0001"
    assert find_version("../elsewhere", home) == Path("../elsewhere")
    (published / "iris").mkdir()
    with pytest.raises(BadInput, match="iris/latest or wine/latest"):
        find_version("latest", home)
    (tmp_path / "latest").mkdir()
    assert find_version("latest", home) == Path("latest")  # a folder that exists comes first
