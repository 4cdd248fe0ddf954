"""What a release says about its secret map, and checks shared by attacks that look for it."""

from __future__ import annotations

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.decompositions import decompose_singular

_MAX_STANDARD_ERRORS = 6.0  # between the lengths of two means


def check_secret_map(attack: Attack, view: AttackerView) -> None:
    """Raise NotApplicable if the release holds original columns: then no map is secret."""
    if view.public.space == "original":
        raise NotApplicable(
            f"The attack {attack.name} undoes a secret map; the release has the original columns.",
            reason=Reason.COLUMNS_RELEASED,
        )


def read_sample(attack: Attack, view: AttackerView) -> Floats:
    """Return the attacker's sample (p, d); raise NotApplicable if its records are all equal."""
    sample = view.sample
    assert sample is not None
    if any(len(table) < 2 or not np.ptp(table, axis=0).any() for table in (sample, view.Y)):
        raise NotApplicable(
            f"The attack {attack.name} needs a sample and a release with records that differ.",
            reason=Reason.TOO_FEW_RECORDS,
        )
    return sample


def sort_rows(Y: Floats) -> Floats:
    """Return the rows sorted by value, so that results do not depend on the row order."""
    return Y[np.lexsort(Y.T)]


def find_origin(view: AttackerView, sample: Floats) -> Floats | None:
    """Return the record that the map sends to zero, if it is documented and the means agree."""
    public, d = view.public, sample.shape[1]
    if public.facts.get("translation") == "secret" or public.space == "embedded":
        return None
    if public.centre is None and public.space == "components":
        return None  # of the records' mean, usually
    origin = np.zeros(d) if public.centre is None else public.centre
    if has_original_units(public) and view.Y.shape[1] == d:
        # A rotation preserves the length of the mean; otherwise there was a shift.
        lengths = (
            np.linalg.norm(sample.mean(axis=0) - origin),
            np.linalg.norm(view.Y.mean(axis=0)),
        )
        error = np.sqrt(sample.var(axis=0).sum() / len(sample))
        if abs(lengths[0] - lengths[1]) > _MAX_STANDARD_ERRORS * error:
            return None
    return np.array(origin)


def has_original_units(public: PublicParameters) -> bool:
    """Return whether released columns are lengths along perpendicular axes, in original units."""
    return public.preserves_distances or public.loadings is not None or "transform" in public.facts


def fit_rotation(Y: Floats, back: Floats) -> Floats:
    """Return the part of an orthogonal matrix that maps these rows nearly as ``back`` does."""
    centred = Y - Y.mean(axis=0)
    return polar(centred.T @ (centred @ back))


def polar(M: Floats) -> Floats:
    """Return the nearest matrix with orthonormal rows or columns, whichever are fewer."""
    U, _, Vt = decompose_singular(M)
    return np.asarray(U @ Vt)
