from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ppdm_core.model.errors import MachineTrouble
from ppdm_core.model.policy import Policy
from tasks import release_space
from tasks.release_space import (
    ReleaseShape,
    check_space,
    estimate_space,
    read_free_disk,
    read_memory,
)

SHAPE = ReleaseShape(rows=1_000_000, columns=22, numbers=20, codes=0, released=6)
POLICY = Policy((), {})


def limit(monkeypatch: pytest.MonkeyPatch, memory: float = 1e12, disk: float = 1e12) -> None:
    monkeypatch.setattr(release_space, "read_memory", lambda: memory)
    monkeypatch.setattr(release_space, "read_free_disk", lambda folder: disk)


def check(shape: ReleaseShape = SHAPE, policy: Policy = POLICY) -> None:
    check_space(shape, policy, Path("home"), is_new_home=False)


def test_estimate_space_twenty_times_the_rows_same_memory_more_disk() -> None:
    one, many = (
        estimate_space(replace(SHAPE, rows=n), POLICY, is_new_home=False)
        for n in (1_000_000, 20_000_000)
    )
    assert one.memory == many.memory
    assert many.disk == pytest.approx(20 * one.disk, rel=0.01)


def test_check_space_enough_of_both_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch)
    check()


def test_check_space_small_disk_names_draws_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = estimate_space(SHAPE, POLICY, is_new_home=False).disk
    limit(monkeypatch, disk=0.8 * needed)
    with pytest.raises(MachineTrouble, match=r"1,000,000 records takes about .* of disk") as caught:
        check()
    found = re.search(r"shadow_draws = (\d+) and splits = (\d+)", caught.value.remedy)
    assert found is not None
    draws, splits = map(int, found.groups())
    check(policy=replace(POLICY, shadow_draws=draws, splits=splits))
    with pytest.raises(MachineTrouble):  # no more than needed was given up
        check(policy=replace(POLICY, shadow_draws=draws + 1, splits=splits))


def test_check_space_tiny_disk_names_records_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, disk=2e8)
    with pytest.raises(MachineTrouble) as caught:
        check()
    found = re.search(r"at most ([\d,]+) records", caught.value.remedy)
    assert found is not None
    rows = int(found[1].replace(",", ""))
    check(replace(SHAPE, rows=rows))
    with pytest.raises(MachineTrouble):
        check(replace(SHAPE, rows=rows + 1))


def test_check_space_little_memory_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, memory=1e8)
    with pytest.raises(MachineTrouble, match="of memory, and this machine has 100 MB") as caught:
        check()
    assert "more memory" in caught.value.remedy


def test_read_space_of_this_machine_positive(tmp_path: Path) -> None:
    assert read_memory() > 1e8
    assert read_free_disk(tmp_path / "not" / "there") > 0
