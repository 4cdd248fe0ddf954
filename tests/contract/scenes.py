"""Releases that an attack must break, and one that tells nothing, as an attacker sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.public_map import has_map, invert
from ppdm_core.types import AttackerView, Floats, Ints, Known, Numeric, Public, Schema

N, D = 150, 4
KNOWN, SAMPLE = 20, 30


@dataclass(frozen=True, eq=False)
class Scene:
    """A view, and what only the scorer knows."""

    view: AttackerView
    X: Floats  # (n, d) in the order of view.Y
    others: Ints  # rows that the attacker did not know before
    targets: Ints  # the row of each target


def orthogonal(rng: np.random.Generator) -> Floats:
    Q, R = np.linalg.qr(rng.standard_normal((D, D)))
    return np.asarray(Q * np.sign(np.diag(R)))


def people(rng: np.random.Generator, n: int) -> Floats:
    """Correlated, inside [0, 1], far enough apart that a guess of the mean finds nobody."""
    return np.clip(0.7 * rng.random((n, D)) + 0.3 * rng.random((n, 1)), 0.0, 1.0)


def laplace_public(L: Floats, b: float) -> Public:
    return Public(
        method="pca_laplace",
        space="components",
        columns=tuple(f"component_{i}" for i in range(D)),
        centre=np.full(D, 0.5),
        loadings=L,
        law="laplace",
        scales=np.full(D, b),
    )


def weak_release(kind: str, X: Floats, rng: np.random.Generator) -> tuple[Floats, Public]:
    M = orthogonal(rng)
    if kind == "rotation":
        columns = tuple(f"rotated_{i}" for i in range(D))
        return X @ M.T, Public("random_rotation", "rotated", columns, preserves_distances=True)
    if kind == "slight noise":
        b = 0.005
        return (X - 0.5) @ M + rng.laplace(0.0, b, X.shape), laplace_public(M, b)
    if kind == "independent noise":
        return rng.laplace(0.0, 1.0, X.shape), laplace_public(M, 1.0)
    raise ValueError(kind)


def scene(kind: str, seed: int = 0) -> Scene:
    rng = np.random.default_rng(seed)
    X = people(rng, N)
    Y, public = weak_release(kind, X, rng)
    rows = rng.permutation(N)
    known, targets = rows[:KNOWN], rows[KNOWN:]
    copies = {"inverse": invert(public, Y)} if has_map(public) else {}
    view = AttackerView(
        Y=Y,
        label=np.zeros(N, dtype=np.int32),
        public=public,
        schema=Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(D))),
        epsilon=0.1,
        known=Known(X[known], known),
        sample=people(rng, SAMPLE),
        targets=X[targets],
        reconstructions=copies,
    )
    return Scene(view, X, np.sort(targets), targets)


def without(view: AttackerView, need: str) -> AttackerView:
    """The same view for an attacker who lacks one thing."""
    public = view.public
    if need == "public.map":
        return replace(view, public=replace(public, loadings=None, centre=None))
    if need == "public.noise":
        return replace(view, public=replace(public, scales=None, law=None))
    if need == "reconstructions":
        return replace(view, reconstructions={})
    return replace(view, **{need: None})


def permuted(view: AttackerView, order: Ints) -> AttackerView:
    """Row ``i`` of the new view is row ``order[i]`` of the old one."""
    assert view.known is not None
    return replace(
        view,
        Y=view.Y[order],
        label=view.label[order],
        known=replace(view.known, rows=np.argsort(order)[view.known.rows]),
        reconstructions={name: X[order] for name, X in view.reconstructions.items()},
    )


def arrays(view: AttackerView) -> dict[str, np.ndarray]:
    """Everything in a view that could be written to."""
    public, known = view.public, view.known
    named = {
        "Y": view.Y,
        "label": view.label,
        "sample": view.sample,
        "targets": view.targets,
        "known.X": known.X if known else None,
        "known.rows": known.rows if known else None,
        "centre": public.centre,
        "loadings": public.loadings,
        "scales": public.scales,
        **{f"reconstructions.{name}": X for name, X in view.reconstructions.items()},
    }
    return {name: array for name, array in named.items() if array is not None}
