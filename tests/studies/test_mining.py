"""What docs/mining.md shows is what the miners do."""

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
from studies import draw_ball, draw_mining, mining
from tasks.stage_facts import public_to_dict
from tests.support.tables import fit, release, table, values

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "mining.md").read_text()


def code(title: str) -> str:
    """The first block of Python below a heading."""
    found = re.search(rf"^## {title}\n.*?```python\n(.*?)```", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def publish(folder: Path, method: str, **parameters: Any) -> np.ndarray:
    """A folder as recipients get it, as far as they read it; and the records behind it."""
    rows = table(400, 5)
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit(sanitizer, rows)
    released = release(sanitizer, rows, bytes(32), fitted)
    columns = dict(zip(released.public.columns, values(released.rows).T, strict=True))
    words = np.array(["no", "yes"])[rows.whole.label]
    folder.mkdir(parents=True)
    pq.write_table(pa.table({**columns, "label": words}), folder / "data.parquet")
    manifest = {
        "public": public_to_dict(released.public),
        "scaling": fitted["scaling"],
        "features": list(rows.schema.names),
        "label": "label",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return rows.whole.X


def test_the_code_for_recipients_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"components": 2, "b": 0.1, "basis": "private"}
    own = publish(tmp_path / "published" / "wdbc" / "latest", "pca_laplace", **parameters)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"own": own}
    exec(code("How to use one"), names)
    right = np.array(["no", "yes"])[table(400, 5).whole.label]
    assert np.mean(names["answers"] == right) > 0.8  # half of them are yes
    exec(code("Clusters"), names)
    assert names["found"].cluster_centers_.shape == (3, 2)


def test_every_miner_is_told_of() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) == set(MINERS)


def test_the_tables_are_those_of_the_pictures() -> None:
    missing = [line for lines in draw_mining.tables() for line in lines if line not in TEXT]
    assert missing == []


@pytest.mark.parametrize("name", [*draw_mining.PICTURES, "ball"])
def test_a_picture_is_shown(name: str) -> None:
    assert f"(pictures/mining/{name}.png)" in TEXT


def test_the_claims_are_those_of_the_figures() -> None:
    paper, unbalanced = draw_mining.kept("paper"), draw_mining.kept("unbalanced")
    for b in mining.LEVELS:
        for name, is_held in (("waveform", True), ("wine", True), ("wdbc", False)):
            figures = paper[f"{name} {b}"]
            assert (mining.gain(figures, "radius", "k = 5", "accuracy")[0] > 0) is is_held
            assert (mining.gain(figures, "radius", "best k", "accuracy")[0] > -0.05) is is_held
            assert mining.gain(figures, "noise-aware", "best k", "accuracy")[0] > 0
            assert not any(figures["radius"]["fallbacks"])
    assert len(mining.UNBALANCED) == 10
    for b in mining.LEVELS:
        for name in mining.UNBALANCED:
            for key in ("accuracy", "balanced"):
                mean, error = draw_mining.worst_gain(unbalanced[f"{name} {b}"], key)
                assert mean > 2 * error, (name, b, key)


def test_the_first_picture_shows_what_the_miners_do_today() -> None:
    with Image.open(draw_mining.FOLDER / "ball.png") as picture:
        picture.load()
        shown = json.loads(picture.text["Figures"])
    assert draw_ball.made().figures == pytest.approx(shown, abs=0.01)
    assert shown["given by the ball"] < shown["given by noise-aware"] / 2


@pytest.mark.slow
def test_a_picture_can_be_drawn_anew(tmp_path: Path) -> None:
    for name in draw_mining.PICTURES:
        contest = draw_mining.kept(name)
        draw_mining.save(name, contest, tmp_path)
        assert draw_mining.kept(name, tmp_path) == contest


@pytest.mark.slow
def test_figures_are_measured_again(shared_data: Path) -> None:
    """Three draws of one table; another kind of machine may answer a query otherwise."""
    shown = draw_mining.kept("paper")["wine 0.3"]
    again = mining.paper_contest("wine", 0.3, 3, shared_data)
    for who, marks in again.items():
        assert marks["accuracy"] == pytest.approx(shown[who]["accuracy"][:3], abs=0.12)
