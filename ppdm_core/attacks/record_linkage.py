"""Find the released rows of people whose records are known from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._assignment import (
    Costs,
    Squares,
    Surprise,
    clamped,
    has_law,
    linked,
    linked_within_labels,
    nearest_within_labels,
    pure_surprise,
)
from ppdm_core.attacks._likelihood import known_noise
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._randomized_responses import Answers
from ppdm_core.attacks._row_posterior import (
    as_it_is,
    as_released,
    can_filter,
    filtered,
    found_again,
    tables,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Attack, AttackerView, ColumnKind, Estimate, Goal
from ppdm_core.numerics.linear_map import components_of, project

FEWEST_PAIRS = 3  # to tell a good column from a lucky one
LEAST_ERROR = 1e-6  # of a column's width
MOST_FOUND = 0.5  # share of people whose value stands in a column that is in the clear


@dataclass(frozen=True)
class RecordLinkage(Attack):
    """Somebody holds full records of real people and looks for their rows in the release.

    Rows with another label than the person's are ruled out: labels are released in the clear.
    For every reconstruction of the original columns: ``nearest:<name>`` takes the closest row,
    ``one_to_one:<name>`` the assignment of least total squared distance, each row used once.

    ``nearest:weighted`` takes the columns as they are released, each by how far off it was for
    known pairs, or without pairs those in the clear alone, whose many values are found again for
    half of the people: one such column decides.

    With a public map and law of noise: ``likelihood`` and ``likelihood_one_to_one`` take the row
    that this law makes likeliest, after records were clamped as the release is; ``odds`` and
    ``odds_one_to_one`` compare that with how likely the row is for anybody, which is the better
    answer when the release has rows of people who are not looked for. Released answers of
    categorical columns count by their own law in all of these, and alone if there is nothing else.

    One-to-one is exact up to 5,000 rows of a label; above, it is exact among the 20 best rows of
    each person.

    The scenario ``partial``: only some of the numeric columns of each person are known, and
    neither label nor categories. The same, on these columns; ``likelihood`` on the components that
    are made of these alone, and ``filtered`` by the errors that remain after the noise was
    filtered out.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), for the map and the law of noise.
    """

    name: ClassVar[str] = "record_linkage"
    story: ClassVar[str] = "Somebody with full records of real people looks for their rows."
    goal: ClassVar[Goal] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "reconstructions"})
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric", "categorical"})
    must_notice: ClassVar[Mapping[str, float]] = {
        "identity": 0.85,
        "slight noise": 0.85,
        "verbatim rows": 0.85,
    }

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.targets is not None
        labels = view.targets.label, view.label
        links = named(
            (name, linked_within_labels(costs, *labels)) for name, costs in full_costs(view)
        )
        d = len(view.schema.numeric)
        weighted = by_column(view, np.arange(d))
        if weighted is not None:
            links["nearest:weighted"] = nearest_within_labels(weighted, *labels)
        if view.partial_columns is None or not len(view.partial_columns):
            return Estimate(links)
        in_part = named((name, linked(costs)) for name, costs in partial_costs(view))
        weighted = by_column(view, view.partial_columns)
        if weighted is not None:
            in_part["nearest:weighted"] = weighted.best(1)[0][:, 0]
        return Estimate(links, scenarios={"partial": in_part})


def named(found: Iterable[tuple[str, tuple[Ints, Ints]]]) -> dict[str, Ints]:
    """Two candidates for each cost; the names of reconstructions begin with a colon."""
    links: dict[str, Ints] = {}
    for name, (nearest, one_to_one) in found:
        is_table = name.startswith(":")
        links[f"nearest{name}" if is_table else name] = nearest
        links[f"one_to_one{name}" if is_table else f"{name}_one_to_one"] = one_to_one
    return links


def full_costs(view: AttackerView) -> Iterator[tuple[str, Costs]]:
    targets = view.targets
    assert targets is not None
    answers = Answers.of(view)
    told = Squares(answers.placed(answers.known(targets)), answers.placed(answers.rows))
    d = len(view.schema.numeric)

    def with_answers(people: Floats, rows: Floats) -> Squares:
        return Squares(np.hstack([people, told.people]), np.hstack([rows, told.rows]))

    for name, X_hat in tables(view).items() if d else ():
        numbers = targets.X, X_hat
        if len(answers):  # in units in which both can be added
            numbers = as_it_is(X_hat, view.schema.widths).half_distances(targets.X, np.arange(d))
        yield f":{name}", with_answers(*numbers)
    if has_law(view):
        noise = known_noise(view.public)
        T, Z = project(view.public, targets.X), components_of(view)
        T, Z = clamped(view, T, np.arange(T.shape[1])) / noise.scales, Z / noise.scales
        name, surprise = "likelihood", Surprise(noise.law, T, Z, told, answers.offset())
    elif not d and len(answers):
        none = np.zeros((targets.n, 0)), np.zeros((len(view.Y), 0))
        name, surprise = "answers", Surprise(None, *none, told, answers.offset())
    else:
        return
    yield name, surprise
    yield "odds", odds_within_labels(view, surprise, answers)


def by_column(view: AttackerView, columns: Ints) -> Squares | None:
    """Distances in these columns as they are released, in units of how good each of them is."""
    X_hat = as_released(view)
    if X_hat is None or view.targets is None or not len(columns):
        return None
    widths = np.where(view.schema.widths > 0, view.schema.widths, 1.0)
    if view.known is not None and len(view.known.rows) >= FEWEST_PAIRS:
        error = np.mean((view.known.X - X_hat[view.known.rows]) ** 2, axis=0)
        unit = np.maximum(np.sqrt(2.0 * error), LEAST_ERROR * widths)  # (d,)
    else:
        is_clear = found_again(view, view.targets.X, X_hat).mean(axis=0) >= MOST_FOUND
        unit = np.where(is_clear, LEAST_ERROR, 1.0) * widths
    unit = unit[columns]
    return Squares(view.targets.X[:, columns] / unit, X_hat[:, columns] / unit)


def odds_within_labels(view: AttackerView, surprise: Surprise, answers: Answers) -> Surprise:
    assert view.targets is not None
    offset = surprise.offset.copy()
    for code in np.unique(view.targets.label).tolist():
        who = np.flatnonzero(view.targets.label == code)
        where = np.flatnonzero(view.label == code)
        if len(where):
            offset[where] = surprise.within(who, where).odds(answers.log_uniform()).offset
    return replace(surprise, offset=offset)


def partial_costs(view: AttackerView) -> Iterator[tuple[str, Costs]]:
    assert view.targets is not None
    assert view.partial_columns is not None
    columns = view.partial_columns
    X = view.targets.X[:, columns]
    for name, X_hat in tables(view).items():
        yield f":{name}", Squares(X, X_hat[:, columns])
    if can_filter(view):
        belief = filtered(view, np.arange(len(view.Y)))
        yield "filtered", Squares(*belief.half_distances(X, columns))
    exact = pure_surprise(view, X, columns)
    if exact is not None:
        yield "likelihood", exact
        yield "odds", exact.odds()
