from __future__ import annotations

from pathlib import Path

from ppdm_core.tuning.trial import Trial
from tasks.tune.progress_file import ProgressFile
from tests.ppdm_core.tuning.trials import make_trial


def make_file(tmp_path: Path) -> ProgressFile:
    return ProgressFile(tmp_path / "tunes" / "people.jsonl")


def test_progress_file_trials_come_back_equal(tmp_path: Path) -> None:
    file, trials = make_file(tmp_path), [make_trial(0.1, 0.7), make_trial(0.2, 0.8)]
    for trial in trials:
        file.append(trial)
    found: list[Trial] = file.read()
    assert found == trials
    assert file.path.stat().st_mode & 0o077 == 0


def test_progress_file_line_cut_off_left_out_and_overwritten(tmp_path: Path) -> None:
    file = make_file(tmp_path)
    file.append(make_trial(0.1, 0.7))
    file.append(make_trial(0.2, 0.8))
    content = file.path.read_bytes()
    file.path.write_bytes(content[:-20])
    assert len(file.read()) == 1
    file.append(make_trial(0.2, 0.8))
    assert file.path.read_bytes() == content


def test_progress_file_removed_empty(tmp_path: Path) -> None:
    file = make_file(tmp_path)
    assert file.read() == []
    file.append(make_trial(0.1, 0.7))
    file.remove()
    assert file.read() == []
