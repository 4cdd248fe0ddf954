"""Likelihood of released categories given the true ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import AttackerView, RecordSet

_MAX_GAMMA = 1e9  # of responses that are never wrong


@dataclass(frozen=True, eq=False)
class ReleasedResponses:
    """The released categorical columns; without any, all arrays have no columns."""

    rows: Codes  # (m, c)
    place: Ints  # (c,) of each in schema.categorical
    weight: Floats  # (c,) log of how much likelier a true response is
    sizes: Ints  # (c,) different cells

    @classmethod
    def from_view(cls, view: AttackerView) -> ReleasedResponses:
        """Read the released categorical columns of a view."""
        responses = view.public.responses if view.C is not None else ()
        names = [column.name for column in view.schema.categorical]
        return cls(
            np.zeros((len(view.Y), 0), dtype=np.int32) if not responses else _check_codes(view.C),
            np.array([names.index(r.column.name) for r in responses], dtype=np.int64),
            np.array([math.log(min(max(r.gamma, 1.0), _MAX_GAMMA)) for r in responses]),
            np.array([r.column.k for r in responses], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.place)

    def select_codes(self, records: RecordSet) -> Codes:
        """Return the true codes of these columns, in the same order."""
        return records.C[:, self.place]

    def place_points(self, codes: Codes, columns: Ints | None = None) -> Floats:
        """Return points whose squared distances are minus the log likelihood, up to a constant."""
        asked = range(len(self)) if columns is None else columns
        blocks = [
            np.sqrt(w / 2) * (codes[:, [j]] == np.arange(-1, size))
            for j, (w, size) in enumerate(zip(self.weight, self.sizes.tolist(), strict=True))
            if j in asked
        ]
        return np.hstack(blocks) if blocks else np.zeros((len(codes), 0))

    def offset(self) -> Floats:
        """Return minus the log probability of each row if all its responses are true, (m,)."""
        kept = self.weight - np.log(np.exp(self.weight) + self.sizes - 1)
        return np.full(len(self.rows), -float(np.sum(kept)))

    def log_uniform(self) -> float:
        """Return the log probability of any responses if they carry no information."""
        return -float(np.sum(np.log(self.sizes)))


def _check_codes(C: Codes | None) -> Codes:
    """Return the codes, which must be there."""
    assert C is not None
    return C
