"""What a method could turn into when it is broken: bad releases in its own output space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ppdm_core.audit.simulation import Draw, Truth
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.release import Public
from ppdm_core.numerics.linear_map import has_map, invert, project
from ppdm_core.numerics.random_orthogonal import haar

SLIGHT = 0.001  # of a released column's range: even a single such column tells people apart
IDENTITY = "identity"
CLEAR = "clear columns"  # as many as leave, as they are
SLIGHT_COPY = 0.01  # what a copy announces to attacks that ask for the noise

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Bad:
    """What leaves in place of the release, one row for each record."""

    Y: Floats  # (n, s)
    C: Codes  # (n, c) answers
    public: Public


def bad_releases(truth: Truth, draw: Draw, rng: Rng) -> Iterator[tuple[str, Bad]]:
    """Those that fit the released columns; what the release announces stays as it is."""
    X, public, C = truth.X, draw.public, true_answers(truth, draw.public)
    d, s = X.shape[1], draw.Y.shape[1]
    if has_map(public):
        clear = project(public, X)
        clear = invert(public, clear) if public.space == "original" else clear
    elif d == s:
        clear = X.copy()
    else:  # identity and rotation do not fit
        yield CLEAR, Bad(X[:, np.sort(rng.permutation(d)[:s])], C, public)
        return
    yield IDENTITY, Bad(clear, C, public)
    if s:
        wide = np.ptp(clear, axis=0)
        yield "slight noise", Bad(clear + rng.laplace(0.0, SLIGHT * wide, clear.shape), C, public)
    if s == d > 1 and not has_map(public) and public.space != "original":
        yield "rotation", Bad(X @ haar(d, rng), C, public)


def copied(truth: Truth, public: Public) -> Bad:
    """All columns as they are, announced as columns with a little noise."""
    d = truth.X.shape[1]
    columns = Public(
        method="copy",
        space="original",
        columns=truth.schema.names,
        centre=np.zeros(d),
        loadings=np.eye(d),
        law="laplace",
        scales=SLIGHT_COPY * np.ptp(truth.X, axis=0),
        responses=public.responses,
    )
    return Bad(truth.X.copy(), true_answers(truth, public), columns)


def pure_noise(truth: Truth, draw: Draw, rng: Rng) -> Bad:
    """As wide as the release, about nobody."""
    n, Y = len(truth.X), draw.Y
    noise = Y.mean(axis=0) + Y.std(axis=0) * rng.standard_normal((n, Y.shape[1]))
    columns = [response.column for response in draw.public.responses]
    C = [rng.integers(-column.missing, len(column.categories), n) for column in columns]
    answers = np.array(C, dtype=np.int32).reshape(len(columns), n).T
    return Bad(noise, answers, draw.public)


def true_answers(truth: Truth, public: Public) -> Codes:
    names = [column.name for column in truth.schema.categorical]
    places = [names.index(response.column.name) for response in public.responses]
    return np.asarray(truth.codes[:, places])


def drawn(release: Bad, *, is_aligned: bool, members: np.ndarray | None, rng: Rng) -> Draw:
    """The release of everybody or of the members; rows of nobody in particular are redrawn."""
    people = np.arange(len(release.Y)) if members is None else members
    source = people if is_aligned else rng.choice(people, len(people))
    draw = Draw(release.Y[source], release.public, source, release.C[source], members)
    return replace(draw, source=None) if is_aligned and members is None else draw
