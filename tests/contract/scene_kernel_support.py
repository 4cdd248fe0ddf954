"""Ten rows around each record in eight columns: whoever is in the release has rows nearby."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.contract.scene_source_record import drawn, people, picked, public, schema


def weak(rng: np.random.Generator) -> dict[str, Any]:
    who = people(300, rng)
    members = np.arange(150)
    Y, _, source = drawn(picked(who, members), 1500, rng)
    return {
        "X": who.X,
        "Y": Y,
        "label": who.label,
        "public": public(),
        "schema": schema(),
        "source": source,
        "members": members,
        "known": 0,
    }
