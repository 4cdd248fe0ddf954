"""Releases whose bytes, verdict and scores stay the same when only the structure changes.

Key, table and code version are fixed, because all noise follows from them. A figure that changes on
purpose is captured again (``PPDM_GOLDEN=write``), in a commit that shows both values. The bytes and
the verdict are the same on every machine. Scores are exact where sums are rounded as when they were
captured (OPENBLAS_CORETYPE=Haswell, NPY_DISABLE_CPU_FEATURES naming the AVX-512 groups of numpy).
Elsewhere rounding decides between rows that are equally close, and what is fitted to half of the
records gets other noise.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
import threadpoolctl
from numpy._core._multiarray_umath import __cpu_features__

from tests.e2e.conftest import Maker
from tests.support.forkserver import run_cli
from tests.support.small_release import BY, FEATURES, Row, Small

FOLDER = Path(__file__).parent / "golden"
FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURED_KERNELS = {"Haswell", "Zen"}
CAPTURED_PYARROW = "25."
TOLERANCE, OTHER_ROUNDING_TOLERANCE = 1e-9, 0.15
WORDS = {"ward": ("north", "south", "east"), "smoker": ("yes", "no")}

SETTINGS: dict[str, dict[str, Any]] = {
    "pca_laplace": {
        "components": 1,
        "b": 0.3,
        "noise_shape": "per_component",
        "basis": "sample",
        "basis_share": 0.2,
    },
    "additive_noise": {"b": 0.5},
    "random_rotation": {"scale": "minmax"},
    "random_projection": {"scale": "minmax", "components": 2},
    "dct_fuzzy": {"scale": "minmax", "b": 0.1, "p": 0.2},
    "nonmetric_mds": {"dimensions": 3, "landmarks": 60, "iterations": 5},
    "kde_resample": {"bandwidth": "corrected", "clip": True},
    "randomized_response": {"gamma": {"record": 20}},
    "pipeline": {
        "scale": "minmax",
        "numeric": {"method": "additive_noise", "b": 0.5},
        "categorical": {"method": "randomized_response", "gamma": {"record": 20}},
    },
}


def words_of(rows: list[Row]) -> list[Row]:
    rng = random.Random(7)
    for row in rows:
        row |= {name: rng.choice(values) for name, values in WORDS.items()}
    return rows


def prepare(release: Small, method: str) -> Small:
    content = release.content
    words = method in ("randomized_response", "pipeline")
    if words:
        release.rows = words_of(release.rows)
        for name, values in WORDS.items():
            content["columns"][name] = {
                "role": "feature",
                "type": "categorical",
                "categories": list(values),
            }
    if method == "randomized_response":
        for name in FEATURES:
            content["columns"][name] = {"role": "exclude"}
        content["audit"]["required"] = ["record_linkage", "attribute_inference"]
        content["limits"] = {
            "amplification.record": {"value": 1e9, **BY},
            "record_linkage.rate": {"value": 0.2, **BY},
            "label.rate": {"value": 0.05, **BY},
        }
    content["sanitizer"] = {"method": method, **SETTINGS[method]}
    content["audit"] |= {"effort": "standard", "shadow_draws": 2}
    return release.write()


def found_in(release: Small, printed: str) -> dict[str, Any]:
    """What the home holds of its only release."""
    (database,) = release.private.glob("*.duckdb")
    with duckdb.connect(str(database), read_only=True) as db:
        ((outcome, digest, findings),) = db.execute(
            "select outcome, data_digest, findings from audit.verdict"
        ).fetchall()
        scores = db.execute("select name, value, low, high, n, baseline, worst from audit.score")
        found = {name: list(figures) for name, *figures in scores.fetchall()}
    data = release.published / "0001" / "data.parquet"
    if data.exists():
        assert hashlib.sha256(data.read_bytes()).hexdigest() == digest
    checks = {each["check"]: each["outcome"] for each in json.loads(findings)}
    return {
        "stage": printed.split()[-1],
        "outcome": outcome,
        "data": digest,
        "checks": dict(sorted(checks.items())),
        "scores": dict(sorted(found.items())),
    }


def read_words() -> set[str]:
    """Return the names of attacks, scenarios and metrics in the stored scores."""
    stored = [json.loads(path.read_text())["scores"] for path in FOLDER.glob("*.json")]
    return {word for scores in stored for name in scores for word in name.split(".")}


def choose_tolerance() -> float:
    """Return the tolerance of scores for the BLAS kernels and the numpy loops of this machine."""
    kernels = {each.get("architecture") for each in threadpoolctl.threadpool_info()}
    is_captured = kernels <= {*CAPTURED_KERNELS, None} and not __cpu_features__.get("AVX512_SKX")
    return TOLERANCE if is_captured else OTHER_ROUNDING_TOLERANCE


# The others are enough to notice that a step changed; these notice what is changed in a method.
NORMAL = ("pca_laplace",)
METHODS = [
    pytest.param(name, marks=() if name in NORMAL else pytest.mark.slow) for name in SETTINGS
]


@pytest.mark.parametrize("method", METHODS)
def test_golden_release_same_bytes_verdict_and_scores(method: str, small: Maker) -> None:
    release = prepare(small(), method)
    result = release.run("all", entry="other_code")
    assert result.exit_code == 0, result
    found, path = found_in(release, result.stdout), FOLDER / f"{method}.json"
    if os.environ.get("PPDM_GOLDEN") == "write":
        path.write_text(json.dumps(found, indent=1) + "\n")
    expected = json.loads(path.read_text())
    tolerance = choose_tolerance()
    for name, figures in expected["scores"].items():
        assert found["scores"][name] == pytest.approx(figures, rel=tolerance, abs=tolerance), name
    # Scores of attacks and metrics that were added since are not compared.
    found["scores"] = {name for name in found["scores"] if set(name.split(".")) <= read_words()}
    expected["scores"] = set(expected["scores"])
    if not pyarrow.__version__.startswith(CAPTURED_PYARROW):  # a Parquet file names its writer
        found["data"] = expected["data"]
    assert found == expected


def test_verify_folder_of_earlier_release_passes() -> None:
    folder, key = FIXTURES / "published", FIXTURES / "published.pem"
    result = run_cli(["verify", str(folder), "--public-key", str(key)])
    assert result.exit_code == 0, result
