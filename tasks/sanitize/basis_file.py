"""A public basis from a JSON file: columns, loadings, variances, ranges of the scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import is_interval
from ppdm_core.sanitizers._basis import LOADING_STEP


def read_basis(path: Path, features: Sequence[str]) -> dict[str, Any]:
    """Return the basis in a JSON file, with its rows in the order of the features."""

    def bad(what: str, remedy: str) -> BadInput:
        return BadInput(f"The basis file {path.name} {what}.", file=str(path), remedy=remedy)

    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        raise bad("does not exist", "Check 'basis_file' in [sanitizer].") from None
    except (OSError, ValueError):
        raise bad("is not readable JSON", "Write it as UTF-8 JSON.") from None
    if not isinstance(content, dict) or not {"columns", "loadings", "variances"} <= set(content):
        raise bad("lacks columns, loadings or variances", "Add the missing fields.")
    if list(content["columns"]) != list(features):
        raise bad("has other columns than the release", "Use the same features in the same order.")
    try:
        loadings = np.array(content["loadings"], dtype=np.float64)
        variances = np.array(content["variances"], dtype=np.float64)
        ranges = np.array(content.get("ranges", []), dtype=np.float64).reshape(-1, 2)
    except (ValueError, TypeError):
        raise bad("holds something that is not a number", "Use plain lists of numbers.") from None
    d = len(features)
    s = loadings.shape[1] if loadings.ndim == 2 else 0
    sound = loadings.shape == (d, s) and 1 <= s <= d and variances.shape == (d,)
    sound = sound and bool(np.all(variances >= 0)) and bool(np.all(np.isfinite(variances)))
    sound = sound and all(map(is_interval, ranges.tolist()))
    if not sound or len(ranges) not in (0, s) or not np.all(np.isfinite(loadings)):
        raise bad(
            "does not fit together",
            f"loadings: {d} rows of s numbers, variances: {d} numbers from 0, "
            "ranges: s pairs [low, high] with low < high.",
        )
    if np.max(np.abs(loadings.T @ loadings - np.eye(s))) > 1e-4:
        raise bad("has loadings that are not orthonormal", "Normalise them.")
    return {
        "columns": list(features),
        "loadings": (np.rint(loadings / LOADING_STEP) * LOADING_STEP).tolist(),
        "variances": variances.tolist(),
        "ranges": ranges.tolist(),
    }
