"""Stage facts with plain values, for tests that need a few of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.release import Guarantee, PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.scaling import Scaling
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts

SCHEMA = Schema((Numeric("x", 0.0, 1.0),))


def make_validated_facts(**changes: Any) -> ValidatedFacts:
    return ValidatedFacts(**{"n": 3, "data": "d", "schema": SCHEMA, **changes})


def make_sanitized_facts(**changes: Any) -> SanitizedFacts:
    facts: dict[str, Any] = {
        "data_digest": "d",
        "table_digest": "t",
        "method": "additive_noise",
        "parameters": {"b": 0.5},
        "public": PublicParameters("additive_noise", "original", ("x",)),
        "schema": SCHEMA,
        "guarantee": Guarantee("empirical", np.inf, np.inf, np.inf),
        "atom": 1e-6,
        "counts": {},
        "scaling": Scaling("minmax", np.zeros(1), np.ones(1)),
        "released": 3,
        "set_aside": 0,
        "set_aside_fits": (),
        "drawn_set_aside": 0,
        "fit": None,
        "fitted": "f",
        "draws": "r",
        "same_columns": True,
        "row_aligned": True,
    }
    return SanitizedFacts(**{**facts, **changes})
