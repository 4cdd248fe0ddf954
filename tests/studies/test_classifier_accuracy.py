"""The code of docs/mining.md, and the measurements behind its figures."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ppdm_core.model.manifest import public_pem, sign
from ppdm_core.sanitizers import make_sanitizer
from studies import classifier_accuracy, draw_classifier_accuracy
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
    """Write the files that a recipient reads; return the original records.

    `steward.pem` is written to the folder above those of all datasets.
    """
    rows = make_table(400, 5)
    sanitizer = make_sanitizer(method, parameters)
    fitted = fit_sanitizer(sanitizer, rows)
    released = run_sanitizer(sanitizer, rows, bytes(32), fitted)
    columns = dict(zip(released.public.columns, read_cells(released.rows).T, strict=True))
    words = np.array(["no", "yes"])[rows.whole.label]
    folder.mkdir(parents=True)
    pq.write_table(pa.table({**columns, "label": words}), folder / "data.parquet")
    data, key = folder / "data.parquet", Ed25519PrivateKey.from_private_bytes(bytes(32))
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    manifest = {
        "release_id": "wdbc-0001",
        "rows": 400,
        "files": {data.name: {"sha256": digest, "bytes": data.stat().st_size}},
        "public": to_json(released.public),
        "scaling": fitted["scaling"],
        "features": list(rows.schema.names),
        "label": "label",
    }
    (folder / "manifest.json").write_bytes(sign(manifest, key))
    (folder.parents[2] / "steward.pem").write_bytes(public_pem(key.public_key()))
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


@pytest.mark.extended
def test_measure_paper_table_three_draws_match_picture(shared_data: Path) -> None:
    """Three draws of one table. A few predictions may differ on other hardware."""
    shown = draw_classifier_accuracy.read_figures("paper")["wine 0.3"]
    again = classifier_accuracy.measure_paper_table("wine", 0.3, 3, shared_data)
    for classifier, measured in again.items():
        assert measured["accuracy"] == pytest.approx(shown[classifier]["accuracy"][:3], abs=0.12)
