"""docs/mining.md shows the measured figures of the miners."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ppdm_core.miners import MINERS
from ppdm_core.sanitizers import make_sanitizer
from studies import classifier_accuracy, draw_classifier_accuracy, draw_radius_vote
from tests.support.tables import fit_sanitizer, make_table, read_cells, run_sanitizer
from warehouse.json_codec import to_json

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "mining.md").read_text()


def read_code(title: str) -> str:
    """Return the first block of Python below a heading."""
    found = re.search(rf"^## {title}\n.*?```python\n(.*?)```", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def publish(folder: Path, method: str, **parameters: Any) -> np.ndarray:
    """Write the files that a recipient reads, and return the original records."""
    rows = make_table(400, 5)
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, bytes(32), fitted)
    columns = dict(zip(released.public.columns, read_cells(released.rows).T, strict=True))
    words = np.array(["no", "yes"])[rows.whole.label]
    folder.mkdir(parents=True)
    pq.write_table(pa.table({**columns, "label": words}), folder / "data.parquet")
    manifest = {
        "public": to_json(released.public),
        "scaling": fitted["scaling"],
        "features": list(rows.schema.names),
        "label": "label",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return rows.whole.X


def test_mining_page_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"components": 2, "b": 0.1, "basis": "private"}
    own = publish(tmp_path / "published" / "wdbc" / "latest", "pca_laplace", **parameters)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"own": own}
    exec(read_code("How to use one"), names)
    right = np.array(["no", "yes"])[make_table(400, 5).whole.label]
    assert np.mean(names["answers"] == right) > 0.8  # half of them are yes
    exec(read_code("Clusters"), names)
    assert names["found"].cluster_centers_.shape == (3, 2)


def test_mining_page_every_miner_listed() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) == set(MINERS)


def test_mining_page_tables_match_pictures() -> None:
    missing = [
        line
        for lines in draw_classifier_accuracy.format_tables()
        for line in lines
        if line not in TEXT
    ]
    assert missing == []


@pytest.mark.parametrize("name", [*draw_classifier_accuracy.PICTURES, "ball"])
def test_mining_page_every_picture_shown(name: str) -> None:
    assert f"(pictures/mining/{name}.png)" in TEXT


def test_mining_page_claims_match_figures() -> None:
    paper, unbalanced = (
        draw_classifier_accuracy.read_figures("paper"),
        draw_classifier_accuracy.read_figures("unbalanced"),
    )
    for b in classifier_accuracy.NOISE_LEVELS:
        for name, is_confirmed in (("waveform", True), ("wine", True), ("wdbc", False)):
            figures = paper[f"{name} {b}"]
            assert (
                classifier_accuracy.compute_gain(figures, "radius", "k = 5", "accuracy")[0] > 0
            ) is is_confirmed
            assert (
                classifier_accuracy.compute_gain(figures, "radius", "best k", "accuracy")[0] > -0.05
            ) is is_confirmed
            assert (
                classifier_accuracy.compute_gain(figures, "noise-aware", "best k", "accuracy")[0]
                > 0
            )
            assert not any(figures["radius"]["fallbacks"])
    assert len(classifier_accuracy.UNBALANCED_TABLES) == 10
    for b in classifier_accuracy.NOISE_LEVELS:
        for name in classifier_accuracy.UNBALANCED_TABLES:
            for key in ("accuracy", "balanced"):
                mean, error = draw_classifier_accuracy.compute_worst_gain(
                    unbalanced[f"{name} {b}"], key
                )
                assert mean > 2 * error, (name, b, key)


def test_make_example_figures_match_picture() -> None:
    with Image.open(draw_classifier_accuracy.PICTURE_FOLDER / "ball.png") as picture:
        picture.load()
        shown = json.loads(picture.text["Figures"])
    assert draw_radius_vote.make_example().figures == pytest.approx(shown, abs=0.01)
    assert shown["given by the ball"] < shown["given by noise-aware"] / 2


@pytest.mark.slow
def test_save_figure_stored_figures_round_trip(tmp_path: Path) -> None:
    for name in draw_classifier_accuracy.PICTURES:
        results = draw_classifier_accuracy.read_figures(name)
        draw_classifier_accuracy.save_figure(name, results, tmp_path)
        assert draw_classifier_accuracy.read_figures(name, tmp_path) == results


@pytest.mark.slow
def test_measure_paper_table_three_draws_match_picture(shared_data: Path) -> None:
    """Three draws of one table. A few predictions may differ on other hardware."""
    shown = draw_classifier_accuracy.read_figures("paper")["wine 0.3"]
    again = classifier_accuracy.measure_paper_table("wine", 0.3, 3, shared_data)
    for classifier, measured in again.items():
        assert measured["accuracy"] == pytest.approx(shown[classifier]["accuracy"][:3], abs=0.12)
