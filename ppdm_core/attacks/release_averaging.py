"""Average the noise away over several releases of the same people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._likelihood import known_noise
from ppdm_core.attacks._linking import has_law
from ppdm_core.attacks._needs import check_needs
from ppdm_core.distances import row_slices
from ppdm_core.errors import NotApplicable
from ppdm_core.laws import DrawnLaw, StudentT
from ppdm_core.public_map import components_of, has_map, invert, project
from ppdm_core.types import AttackerView, Estimate, Floats, Goal

_STEPS = 30  # of the likeliest value, each one closer


@dataclass(frozen=True)
class ReleaseAveraging:
    """A subscriber keeps the earlier releases of the same people and puts them together.

    Candidates: the ``mean`` and the ``median`` of all versions of a row; where the law of the
    noise is public, the ``likeliest`` value (normal: the mean; Laplace: the median; uniform: the
    middle of least and largest; Student's t and logistic: by repeated weighting), and where that
    has a variance ``shrunk``: the likeliest values, filtered for the noise that is left. A version
    that repeats another one to the last digit is the same draw of noise and counts once.

    Versions are averaged as components where the map is public and mapped back, else in the
    original columns; all are clipped to the declared bounds.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), whose noise this wears down; Huber
    (1981), likeliest values by repeated weighting.
    """

    name: ClassVar[str] = "release_averaging"
    story: ClassVar[str] = "A subscriber averages over all releases of the same people."
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"earlier"})

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        public = view.public
        if not has_map(public) and public.space != "original":
            raise NotApplicable(
                f"The attack {self.name} needs a published linear map or the original columns."
            )
        versions = new_versions(view)  # (v, m, s)
        found = {"mean": np.nanmean(versions, axis=0), "median": median(versions)}
        if has_law(view):
            noise = known_noise(public)
            found["likeliest"] = likeliest(versions, noise.law, noise.scales)
            if noise.has_variance:
                count = np.isfinite(versions[:, :, 0]).sum(axis=0)
                left = noise.variance * left_over(noise.law)
                found["shrunk"] = shrunk(found["likeliest"], left, count)
        if has_map(public):
            found = {name: invert(public, Z) for name, Z in found.items()}
        low, high = view.schema.lows, view.schema.highs
        return Estimate({name: np.clip(X_hat, low, high) for name, X_hat in found.items()})


def new_versions(view: AttackerView) -> Floats:
    """All versions, the current one first, NaN where there is nothing new."""
    found = [components_of(view) if has_map(view.public) else view.Y]
    for Y in view.earlier:
        is_back = has_map(view.public) and view.public.space == "original"
        version = np.array(project(view.public, Y) if is_back else Y)
        for other in found:
            version[(version == other).all(axis=1)] = np.nan
        found.append(version)
    return np.stack(found)


def median(versions: Floats) -> Floats:
    """(m, s) over those that are there, which numpy does one by one."""
    ranked = np.sort(versions, axis=0)  # NaN last
    count = np.isfinite(versions).sum(axis=0)[None]
    low, high = (np.take_along_axis(ranked, i, axis=0)[0] for i in ((count - 1) // 2, count // 2))
    return np.asarray((low + high) / 2)


def left_over(law: DrawnLaw) -> float:
    """Variance of the likeliest value times the versions, as a share of that of the mean."""
    if isinstance(law, StudentT):
        nu = law.nu
        return (nu + 3) * (nu - 2) / ((nu + 1) * nu)
    return {"laplace": 0.5, "logistic": 9 / np.pi**2}.get(law.name, 1.0)


def likeliest(versions: Floats, law: DrawnLaw, scales: Floats) -> Floats:
    """(m, s) by the law of the noise."""
    if law.name == "normal":
        return np.asarray(np.nanmean(versions, axis=0))
    if law.name == "uniform":
        return np.asarray((np.nanmin(versions, axis=0) + np.nanmax(versions, axis=0)) / 2)
    middle = median(versions)
    if law.name == "laplace":
        return np.asarray(middle)
    for rows in row_slices(versions.shape[1], 4 * versions.shape[0] * versions.shape[2]):
        middle[rows] = _reweighted(versions[:, rows] / scales, middle[rows] / scales, law) * scales
    return np.asarray(middle)


def _reweighted(U: Floats, middle: Floats, law: DrawnLaw) -> Floats:
    """Means by weights that fall with the distance; each step makes the values likelier."""
    heard, U = np.isfinite(U), np.nan_to_num(U)
    for _ in range(_STEPS):
        gap = np.abs(U - middle)
        if isinstance(law, StudentT):
            weight = heard / (law.nu + gap**2)
        else:
            weight = heard * np.tanh(gap / 2) / np.maximum(gap, 1e-12)
            weight[heard & (gap < 1e-6)] = 0.5
        middle = (weight * U).sum(axis=0) / weight.sum(axis=0)
    return middle


def shrunk(
    T: Floats, variance: Floats, count: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Floats:
    """Wiener filter; the more versions of a row, the less noise is left in it."""
    mean = T.mean(axis=0)
    left = np.diag(variance) * float(np.mean(1.0 / count))
    centred = T - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / max(len(T) - 1, 1) - left)
    signal = (vectors * np.maximum(values, 0.0)) @ vectors.T
    found = np.empty_like(T)
    for versions in np.unique(count).tolist():
        rows = count == versions
        seen = signal + np.diag(variance) / versions
        found[rows] = mean + centred[rows] @ np.linalg.pinv(seen, hermitian=True) @ signal
    return found
