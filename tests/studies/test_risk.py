"""What docs/attacks.md tells of is there: every attack, every method, every picture."""

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
from studies import draw_risk, risk, risk_sweeps, risk_table

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "attacks.md").read_text()
METHODS = list(SANITIZERS)


def figures(method: str) -> dict[str, Any]:
    with Image.open(draw_risk.FOLDER / f"{method}.png") as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))


def test_the_page_tells_of_every_attack_and_of_every_score_of_one() -> None:
    for name in ATTACKS:
        assert len(re.findall(rf"^\| `{name}` \|", TEXT, re.MULTILINE)) == 2, name
    measured = [name for name, metric in METRICS.items() if metric.goal in EVALUATORS]
    assert [name for name in measured if f"`{name}`" not in TEXT] == []


def test_the_table_has_a_cell_for_every_attack_and_setting() -> None:
    lines = re.findall(r"^\| `([\w.]+)` \|((?: (?:\*\*\d+\*\*|\d+|-) \|)+)$", TEXT, re.MULTILINE)
    assert [name for name, _ in lines] == list(risk_table.LINES)
    settings = len(risk_table.WEAK) + len(risk_table.NOISIER)
    assert {cells.count("|") for _, cells in lines} == {settings}


@pytest.mark.parametrize("method", METHODS)
def test_a_picture_shows_every_point_of_its_method(method: str) -> None:
    sweep, shown = risk_sweeps.SWEEPS[method], figures(method)
    assert f"(pictures/risk/{method}.png)" in TEXT
    assert list(shown) == [*sweep.scores, risk_sweeps.ACCURACY]
    for name in sweep.scores:
        assert len(shown[name]) == len(sweep.values) and any(shown[name])
        for point in filter(None, shown[name]):
            value, low, high, _ = point
            assert low <= value <= high and value <= 1 and math.isfinite(low + high)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "random_rotation"])
def test_more_noise_is_less_risk(method: str) -> None:
    """Between the ends of a sweep; with rotations it is the attacker who knows more."""
    ends = figures(method)["record_linkage.rate"]
    first, last = ends[0][0], ends[-1][0]
    grows = method in ("random_projection", "nonmetric_mds", "randomized_response")
    assert (last - first if grows else first - last) > 0


def test_a_picture_can_be_drawn_anew(tmp_path: Path) -> None:
    kept = draw_risk.FOLDER / "pca_laplace.png"
    made = draw_risk.save("pca_laplace", figures("pca_laplace"), tmp_path)
    with Image.open(kept) as one, Image.open(made) as other:
        assert one.size[1] == other.size[1]
        if one.size == other.size:  # labels beside the axes are as wide as the fonts make them
            pair = [np.asarray(each.convert("L"), dtype=float) for each in (one, other)]
            assert np.abs(pair[0] - pair[1]).mean() < 10


@pytest.mark.slow
def test_a_point_of_a_picture_is_what_the_audit_gives(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    sweep, shown = risk_sweeps.SWEEPS["randomized_response"], figures("randomized_response")
    found = risk.audit_release(sweep.at(sweep.values[2]), ["record_linkage"])
    now = risk_sweeps.told(found["record_linkage.rate"])
    assert now is not None
    assert now[0] == pytest.approx(shown["record_linkage.rate"][2][0], abs=0.03)
