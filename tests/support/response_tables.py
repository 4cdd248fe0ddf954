"""Two categorical columns and their random answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.randomized_response import RandomizedResponse

KEY = bytes(range(32))
COLOUR = Categorical("colour", ("red", "green", "blue"))
ANSWER = Categorical("answer", ("no", "yes"), missing=True)


def table(C: np.ndarray, *columns: Categorical) -> ArrayRows:
    codes = np.asarray(C, dtype=np.int32)
    return ArrayRows(Schema((), columns), np.empty((len(codes), 0)), C=codes)


def released(rows: ArrayRows, key: bytes = KEY, **gamma: Any) -> np.ndarray:
    answers = RandomizedResponse(gamma=gamma).sanitize(rows, Noise(key), {})
    return np.concatenate([block.C for block in answers.rows.blocks()])
