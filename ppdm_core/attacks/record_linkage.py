"""Find the released rows of persons whose records are known from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._assignment import (
    Costs,
    CostsWithOdds,
    DistanceCosts,
    LikelihoodCosts,
    Links,
    clamp_components,
    find_pure_component_costs,
    has_noise_distribution,
    scale_components,
    search_nearest,
    search_rows,
    select_surest,
    split_by_label,
)
from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_likelihood import read_noise
from ppdm_core.attacks._randomized_responses import ReleasedResponses
from ppdm_core.attacks._row_features import list_invariant_forms
from ppdm_core.attacks._row_posterior import (
    assume_gap_error,
    can_filter,
    filter_noise,
    find_verbatim_values,
    list_reconstructions,
    read_noisy_columns,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, ColumnKind, Estimate, Goal
from ppdm_core.numerics.linear_map import project

MIN_KNOWN_PAIRS = 3  # to distinguish a good column from a lucky one
MIN_RELATIVE_ERROR = 1e-6  # of a column's width
MIN_VERBATIM_SHARE = 0.5  # of persons, in an unperturbed column


@dataclass(frozen=True)
class RecordLinkage(Attack):
    """An attacker holds full records of real persons and looks for their rows in the release.

    Rows with another label than the person's are ruled out: labels are released unperturbed.
    For every reconstruction of the original columns: ``nearest:<name>`` takes the closest row,
    ``one_to_one:<name>`` the assignment of least total squared distance, each row used once.

    ``nearest:weighted`` takes the columns as they are released, each weighted by its error on
    known pairs, or without pairs those released unperturbed alone, whose many values are found
    again for half of the persons: one such column decides.

    With a public map and noise distribution: ``likelihood`` and ``likelihood_one_to_one`` take the
    row that this distribution makes likeliest, after records were clamped as the release is;
    ``odds`` and ``odds_one_to_one`` compare that with how likely the row is for any person, which
    is better when the release has rows of persons who are not targets. Released responses of
    categorical columns count by their own distribution in all of these, and alone if there is
    nothing else.

    One-to-one is exact up to 5,000 rows of a label; above, it is exact among the 20 best rows of
    each person.

    ``nearest:absolute``, ``nearest:rearranged`` and ``nearest:direction`` compare the sizes of the
    values, the sorted values, and the values divided by their length.

    The scenario ``surest``: the tenth of the persons whose closest row is much closer than the
    second one; ``few``: one in fifty. A few persons who are released almost as they are do not
    change an average.

    The scenario ``partial``: only some of the numeric columns of each person are known, and
    neither label nor categories. The same, on these columns; ``likelihood`` on the components that
    are made of these alone, and ``filtered`` by the errors that remain after the noise was
    filtered out.

    References: Mukherjee, Banerjee, Chen, Gangopadhyay (2008), for the map and the noise.
    """

    name: ClassVar[str] = "record_linkage"
    story: ClassVar[str] = "An attacker with full records of real persons looks for their rows."
    title: ClassVar[str] = "Knows a person's full record"
    goal: ClassVar[Goal] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"targets", "reconstructions"})
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric", "categorical"})
    searches_all_rows: ClassVar[bool] = True
    must_notice: ClassVar[Mapping[str, float]] = {
        "identity": 0.85,
        "slight noise": 0.85,
        "verbatim rows": 0.85,
    }

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.targets is not None
        found = search_rows(view, compute_full_costs)
        links = name_candidates(found)
        margins = [(each.nearest, each.margin) for _, each in found]
        for name, link, margin in search_nearest(view, compute_column_costs):
            margins.append((link, margin))
            links[f"nearest:{name}"] = link
        scenarios = select_surest(margins) if margins else {}
        if view.partial_columns is None or not len(view.partial_columns):
            return Estimate(links, scenarios=scenarios)
        in_part = name_candidates(search_rows(view, compute_partial_costs, within_labels=False))
        for name, link, _ in search_nearest(view, weigh_partial_columns, within_labels=False):
            in_part[f"nearest:{name}"] = link
        return Estimate(links, scenarios={**scenarios, "partial": in_part})


def name_candidates(found: Iterable[tuple[str, Links]]) -> dict[str, Ints]:
    """Return two named candidates for each cost; names of reconstructions begin with a colon."""
    links: dict[str, Ints] = {}
    for name, each in found:
        is_table = name.startswith(":")
        links[f"nearest{name}" if is_table else name] = each.nearest
        links[f"one_to_one{name}" if is_table else f"{name}_one_to_one"] = each.one_to_one
    return links


def compute_full_costs(view: AttackerView) -> Iterator[tuple[str, Costs | CostsWithOdds]]:
    """Yield costs by name for targets that are known in all columns."""
    targets = view.targets
    assert targets is not None
    responses = ReleasedResponses.from_view(view)
    response_costs = DistanceCosts(
        responses.place_points(responses.select_codes(targets)),
        responses.place_points(responses.rows),
    )
    d = len(view.schema.numeric)

    def add_responses(persons: Floats, rows: Floats) -> DistanceCosts:
        """Append the points of the categorical columns."""
        return DistanceCosts(
            np.hstack([persons, response_costs.persons]), np.hstack([rows, response_costs.rows])
        )

    for name, X_hat in list_reconstructions(view).items() if d else ():
        numbers = targets.X, X_hat
        if len(responses):  # in units in which both can be added
            basis = list_reconstructions(view.fitted)[name]
            gap = assume_gap_error(basis, view.schema.widths)
            numbers = replace(gap, mean=X_hat).place_points(targets.X, np.arange(d))
        yield f":{name}", add_responses(*numbers)
    if has_noise_distribution(view):
        noise = read_noise(view.public)
        T = project(view.public, targets.X)
        T, Z = (
            clamp_components(view, T, np.arange(T.shape[1])) / noise.scales,
            scale_components(view),
        )
        name, surprise = (
            "likelihood",
            LikelihoodCosts(noise.distribution, T, Z, response_costs, responses.offset()),
        )
    elif not d and len(responses):
        none = np.zeros((targets.n, 0)), np.zeros((len(view.Y), 0))
        name, surprise = "answers", LikelihoodCosts(None, *none, response_costs, responses.offset())
    else:
        return
    if view.is_block:
        labels, fitted = targets.label, view.fitted
        rows = (scale_components(fitted), fitted.label) if surprise.rows.shape[1] else None
        yield name, CostsWithOdds(surprise, responses.log_uniform(), labels, rows)
        return
    yield name, surprise
    yield "odds", compute_odds_within_labels(view, surprise, responses)


def compute_column_costs(view: AttackerView) -> Iterator[tuple[str, DistanceCosts]]:
    """Yield costs by name in the columns as they are released."""
    weighted = weigh_columns(view, np.arange(len(view.schema.numeric)))
    if weighted is not None:
        yield "weighted", weighted
    yield from compute_invariant_costs(view)


def weigh_partial_columns(view: AttackerView) -> Iterator[tuple[str, DistanceCosts]]:
    """Yield the costs in the columns of a partly informed attacker, if they are released."""
    assert view.partial_columns is not None
    weighted = weigh_columns(view, view.partial_columns)
    if weighted is not None:
        yield "weighted", weighted


def compute_invariant_costs(view: AttackerView) -> Iterator[tuple[str, DistanceCosts]]:
    """Yield costs by name in forms of the rows that simple changes of a row keep.

    The original columns must be released.
    """
    X_hat, targets = read_noisy_columns(view), view.targets
    if X_hat is None or targets is None or not targets.n or X_hat.shape[1] < 2:
        return
    forms = list_invariant_forms(X_hat, targets.X)
    for name, persons in list_invariant_forms(targets.X, targets.X).items():
        yield name, DistanceCosts(persons, forms[name])


def weigh_columns(view: AttackerView, columns: Ints) -> DistanceCosts | None:
    """Return distances in these columns as released, each column in units of its error.

    None if the columns were not released.
    """
    X_hat, basis = read_noisy_columns(view), read_noisy_columns(view.fitted)
    if X_hat is None or basis is None or view.targets is None or not len(columns):
        return None
    widths = np.where(view.schema.widths > 0, view.schema.widths, 1.0)
    if view.known is not None and len(view.known.rows) >= MIN_KNOWN_PAIRS:
        error = np.mean((view.known.X - basis[view.known.rows]) ** 2, axis=0)
        unit = np.maximum(np.sqrt(2.0 * error), MIN_RELATIVE_ERROR * widths)  # (d,)
    else:
        is_clear = (
            find_verbatim_values(view, view.targets.X, basis).mean(axis=0) >= MIN_VERBATIM_SHARE
        )
        unit = np.where(is_clear, MIN_RELATIVE_ERROR, 1.0) * widths
    unit = unit[columns]
    return DistanceCosts(view.targets.X[:, columns] / unit, X_hat[:, columns] / unit)


def compute_odds_within_labels(
    view: AttackerView, surprise: LikelihoodCosts, responses: ReleasedResponses
) -> LikelihoodCosts:
    """Return the costs relative to how likely each row is for the persons with its label."""
    assert view.targets is not None
    offset, log_uniform = surprise.offset.copy(), responses.log_uniform()
    for who, where in split_by_label(view.targets.label, view.label, within_labels=True):
        offset[where] = surprise.select(who, where).compute_odds(log_uniform).offset
    return replace(surprise, offset=offset)


def compute_partial_costs(view: AttackerView) -> Iterator[tuple[str, Costs | CostsWithOdds]]:
    """Yield costs by name for targets that are known in some columns."""
    assert view.targets is not None
    assert view.partial_columns is not None
    columns = view.partial_columns
    X = view.targets.X[:, columns]
    for name, X_hat in list_reconstructions(view).items():
        yield f":{name}", DistanceCosts(X, X_hat[:, columns])
    if can_filter(view):
        posterior = filter_noise(view, np.arange(len(view.Y)))
        yield "filtered", DistanceCosts(*posterior.place_points(X, columns))
    exact = find_pure_component_costs(view, X, columns)
    if exact is None:
        return
    if view.is_block:
        pure = find_pure_component_costs(view.fitted, X, columns)
        assert pure is not None
        yield "likelihood", CostsWithOdds(exact, 0.0, None, (pure.rows, view.fitted.label))
        return
    yield "likelihood", exact
    yield "odds", exact.compute_odds()
