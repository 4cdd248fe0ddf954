"""docs/attacks.md lists every attack, method and picture, with the measured figures."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.evaluators import EVALUATORS
from ppdm_core.metrics import METRICS
from ppdm_core.sanitizers import SANITIZERS
from studies import attack_sweeps, attack_table, draw_attack_sweeps, public_table_audit

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "attacks.md").read_text()
METHODS = list(SANITIZERS)


def read_figures(method: str) -> dict[str, Any]:
    with Image.open(draw_attack_sweeps.PICTURE_FOLDER / f"{method}.png") as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))


def test_attacks_page_every_attack_and_metric_listed() -> None:
    for name in ATTACKS:
        assert len(re.findall(rf"^\| `{name}` \|", TEXT, re.MULTILINE)) == 2, name
    measured = [name for name, metric in METRICS.items() if metric.goal in EVALUATORS]
    assert [name for name in measured if f"`{name}`" not in TEXT] == []


def test_attacks_page_table_complete() -> None:
    lines = re.findall(r"^\| `([\w.]+)` \|((?: (?:\*\*\d+\*\*|\d+|-) \|)+)$", TEXT, re.MULTILINE)
    assert [name for name, _ in lines] == list(attack_table.TABLE_LINES)
    settings = len(attack_table.WEAK_SETTINGS) + len(attack_table.NOISIER_SETTINGS)
    assert {cells.count("|") for _, cells in lines} == {settings}


@pytest.mark.parametrize("method", METHODS)
def test_picture_figures_every_point_stored(method: str) -> None:
    sweep, shown = attack_sweeps.SWEEPS[method], read_figures(method)
    assert f"(pictures/risk/{method}.png)" in TEXT
    assert list(shown) == [*sweep.scores, attack_sweeps.ACCURACY]
    for name in sweep.scores:
        assert len(shown[name]) == len(sweep.values) and any(shown[name])
        for point in filter(None, shown[name]):
            value, low, high, _ = point
            assert low <= value <= high and value <= 1 and math.isfinite(low + high)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "random_rotation"])
def test_record_linkage_more_noise_lower_rate(method: str) -> None:
    """Between the ends of a sweep. For rotations the sweep varies the attacker's knowledge."""
    ends = read_figures(method)["record_linkage.rate"]
    first, last = ends[0][0], ends[-1][0]
    grows = method in ("random_projection", "nonmetric_mds", "randomized_response")
    assert (last - first if grows else first - last) > 0


def test_save_figure_stored_figures_same_picture(tmp_path: Path) -> None:
    stored = draw_attack_sweeps.PICTURE_FOLDER / "pca_laplace.png"
    made = draw_attack_sweeps.save_figure("pca_laplace", read_figures("pca_laplace"), tmp_path)
    with Image.open(stored) as one, Image.open(made) as other:
        assert one.size[1] == other.size[1]
        if one.size == other.size:  # the width of the labels depends on the fonts
            pair = [np.asarray(each.convert("L"), dtype=float) for each in (one, other)]
            assert np.abs(pair[0] - pair[1]).mean() < 10


@pytest.mark.slow
def test_audit_release_swept_setting_matches_picture(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    sweep, shown = attack_sweeps.SWEEPS["randomized_response"], read_figures("randomized_response")
    found = public_table_audit.audit_release(
        sweep.make_release(sweep.values[2]), ["record_linkage"]
    )
    now = attack_sweeps.make_point(found["record_linkage.rate"])
    assert now is not None
    assert now[0] == pytest.approx(shown["record_linkage.rate"][2][0], abs=0.03)
