from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers import make_sanitizer
from tasks.sanitize.basis_file import read_basis

GOOD = {
    "columns": ["x", "y"],
    "loadings": [[0.6], [0.8]],
    "variances": [2.0, 1.0],
    "ranges": [[-1.0, 1.0]],
}


def write(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({**GOOD, **changes}))
    return path


def test_a_basis_file_serves_a_release(tmp_path: Path) -> None:
    fitted = read_basis(write(tmp_path / "basis.json"), ["x", "y"])
    sanitizer = make_sanitizer(
        "pca_laplace",
        {"basis": "file", "basis_file": "basis.json", "b": 0.5, "noise_shape": "per_component"},
    )
    schema = Schema((Numeric("x", 0.0, 1.0), Numeric("y", 0.0, 1.0)))
    guarantee = sanitizer.guarantee(schema, fitted)
    assert guarantee.kind == "bounded"
    # over the column box the score spans 1.4 of its range of 2: ln gamma = 1.4 / (0.5 * 2)
    assert guarantee.ln_record == pytest.approx(1.4, abs=0.002)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"columns": ["y", "x"]}, "other columns"),
        ({"loadings": [[0.6], [0.9]]}, "not orthonormal"),
        ({"loadings": [[0.6]]}, "does not fit together"),
        ({"loadings": [["a"], ["b"]]}, "not a number"),
        ({"ranges": [[0, 1], [0, 1]]}, "does not fit together"),
    ],
)
def test_a_bad_basis_file_is_bad_input(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        read_basis(write(tmp_path / "basis.json", **changes), ["x", "y"])
    assert caught.value.remedy
    assert caught.value.file == str(tmp_path / "basis.json")


def test_a_missing_or_broken_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        read_basis(tmp_path / "none.json", ["x"])
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(BadInput, match="not readable JSON"):
        read_basis(tmp_path / "broken.json", ["x"])
