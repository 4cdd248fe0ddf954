"""Learn from known pairs how records and rows belong together, and link the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._assignment import (
    DistanceCosts,
    find_nearest_within_labels,
    select_surest,
)
from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._needs import check_needs
from ppdm_core.attacks._noise_costs import NoiseCosts
from ppdm_core.attacks._noise_shape import fit_noise_shape
from ppdm_core.attacks._noise_sizes import fit_noise_sizes
from ppdm_core.attacks._pair_regression import (
    Fit,
    fit_by_column,
    fit_kernel,
    fit_least_squares,
    fit_ridge,
)
from ppdm_core.attacks._residual_weights import weigh_directions, weigh_features
from ppdm_core.attacks._row_features import (
    Features,
    append_products,
    append_squares,
    compute_features,
    compute_figures,
    compute_logarithms,
    standardise,
    standardise_self,
    to_original_units,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.decompositions import decompose_symmetric

MIN_PAIRS = 9
_PRODUCT_GROUPS = 5  # of columns, of which three at a time are multiplied
_MAX_PRODUCT_ROWS = 200_000
_CANDIDATES = ("first", "second", "third")  # the best linkers on left-out pairs
_COMPARED_ROWS = 300  # other rows among which a left-out pair is ranked
_MAX_COMPARED_PAIRS = 450  # that linkers are fitted to and tried on
_PAIRS_PER_FEATURE = 1.5  # needed for least squares

# Features of a record that features of its row are predicted from, and the other way round.
_PREDICTED: dict[str, tuple[str, ...]] = {
    "columns": ("columns", "ranks", "invariants"),
    "ranks": ("columns", "ranks"),
    "sorted": ("columns", "invariants"),
    "invariants": ("invariants",),
    "lengths of pairs": ("lengths of pairs",),
    "figures": ("columns", "ranks"),
    "neighbours": ("columns",),
}
_REGRESSIONS: dict[str, Fit] = {
    "ridge": fit_ridge,
    "least squares": fit_least_squares,
    "kernel": fit_kernel,
    "by column": fit_by_column,
}
_WEIGHTS = {"features": weigh_features, "directions": weigh_directions}


@dataclass(frozen=True)
class LearnedLinkage(Attack):
    """An insider recognises the rows of some persons and learns from them how to find others.

    Records and rows are described by their columns, by ranks, by sorted values, by distances from
    their nearest neighbours, and by figures that do not change when the values of a row are
    rearranged (sums, lengths, extremes) or when pairs of columns are rotated. Logarithms, squares
    and products of columns show ratios, sums of squares and other quadratic forms that the noise
    spares. Where both sides have the same features they are compared directly; otherwise the
    features of one side are predicted from those of the other, both ways, by linear maps, by kernel
    regression, and each from one column alone by a map of any shape.
    Errors on the known pairs give the weight of every feature, or of every direction: what the
    release keeps exactly decides, however much noise is on the rest. Figures of the row, such as
    its length, its median or the order of its values, may stand for one column of the record. The
    noise itself is compared too: its length and its direction, seen from the record and the row,
    and its size in every cell, which decides if it is small in some cells.

    All linkers are fitted to two thirds of the pairs and tried on the others. The best three are
    fitted to all pairs and used: ``first``, ``second`` and ``third``.

    The scenario ``surest``: the tenth of the persons whose best row is much better than the second;
    ``few``: one in fifty.

    The scenario ``half``: the attacker knows the rows of half of the persons. It is an upper bound
    on what can be learned from pairs.

    References: Torra, Navarro-Arribas, Abril, "Supervised learning for record linkage through
    weighted means and OWA operators" (2010), for weights that are learned from pairs.
    """

    name: ClassVar[str] = "learned_linkage"
    story: ClassVar[str] = (
        "An insider recognises the rows of {k} persons and learns from them how to find others."
    )
    title: ClassVar[str] = "Learns from recognised rows"
    goal: ClassVar[Goal] = "link"
    needs: ClassVar[frozenset[str]] = frozenset({"known", "targets"})
    runs_half_known: ClassVar[bool] = True
    must_notice: ClassVar[Mapping[str, float]] = {
        "noise with a hole": 0.85,
        "rearranged values": 0.85,
        "curved map": 0.85,
    }

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        assert view.known is not None
        assert view.targets is not None
        if len(view.known.rows) < MIN_PAIRS:
            raise NotApplicable(
                f"The attack {self.name} needs {MIN_PAIRS} known records or more (known_records in "
                "[attacker]).",
                reason=Reason.MISSING_KNOWLEDGE,
            )
        pairs = describe_pairs(view)
        order = rng.permutation(len(view.known.rows))
        some = order[:_MAX_COMPARED_PAIRS]
        others = rng.permutation(np.setdiff1d(np.arange(len(view.Y)), pairs.rows))[:_COMPARED_ROWS]
        few = pairs.select(some, others)
        learned, tried = np.split(np.arange(len(some)), [-(-2 * len(some) // 3)])
        rest = len(some) + np.arange(len(others))
        ranks = {
            spec: linker.rank_pairs(tried, tried, rest)
            for spec, linker in fit_linkers(few, learned)
        }
        best = sorted(ranks, key=ranks.__getitem__)[: len(_CANDIDATES)]
        fitted = dict(fit_linkers(pairs, order, best))
        labels = view.targets.label, view.label
        links = {
            name: find_nearest_within_labels(fitted[spec].compute_costs(len(pairs.rows)), *labels)
            for name, spec in zip(_CANDIDATES, best, strict=False)
        }
        return Estimate(
            {name: link for name, (link, _) in links.items()},
            scenarios=select_surest(list(links.values())),
        )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Features of persons and rows."""

    persons: Features  # the known persons, then the targets
    released: Features
    rows: Ints  # (k,) of the known persons
    comparable: tuple[Floats, Floats] | None  # persons and rows in the same units, if there are any

    def select(self, known: Ints, others: Ints) -> Pairs:
        """Return some known persons with their rows, in this order, and then the other rows."""
        rows = np.concatenate([self.rows[known], others])
        comparable = None
        if self.comparable is not None:
            comparable = self.comparable[0][known], self.comparable[1][rows]
        return Pairs(
            {family: table[known] for family, table in self.persons.items()},
            {family: table[rows] for family, table in self.released.items()},
            np.arange(len(known)),
            comparable,
        )


def describe_pairs(view: AttackerView) -> Pairs:
    """Return the features of known persons, targets and rows."""
    assert view.known is not None
    assert view.targets is not None
    X = np.vstack([view.known.X, view.targets.X])
    is_same = view.public.space == "original" and X.shape[1] == view.Y.shape[1]
    units = (view.offset, view.unit)
    others = X[:0] if view.sample is None else view.sample
    everyone = np.vstack([X, others])
    persons = compute_features(X, to_original_units(X, *units), everyone)
    released = dict(
        view.compute_once(
            "row features",
            lambda Y: compute_features(Y, to_original_units(Y, *units) if is_same else Y, Y),
        )
    )
    comparable = None
    if is_same:
        persons["values"], released["values"] = X, view.Y
        comparable = persons["columns"], standardise(view.Y, everyone)
        released["figures"] = standardise_self(compute_figures(comparable[1]))
        persons["squares"], released["squares"] = map(append_squares, comparable)
        raw, raw_rows = (to_original_units(each, *units) for each in (X, view.Y))
        for name, columns in list_product_columns(len(view.known.rows), *comparable[1].shape):
            persons[name], released[name] = (append_products(Z[:, columns]) for Z in comparable)
        persons["logarithms"] = compute_logarithms(raw, raw)
        released["logarithms"] = compute_logarithms(raw_rows, raw)
    return Pairs(persons, released, view.known.rows, comparable)


@dataclass(frozen=True)
class LinkerSpec:
    """How a linker compares records with rows."""

    regression: str  # "" compares features directly
    predicts_rows: bool  # else records are predicted
    given: str
    compared: str  # family of features
    weights: str = "features"
    uses_odds: bool = False


_BY_NOISE = {
    LinkerSpec("", True, "noise", "shape"): fit_noise_shape,
    LinkerSpec("", True, "noise", "sizes"): fit_noise_sizes,
}


@dataclass(frozen=True, eq=False)
class Linker:
    """Points of persons and rows whose squared distance, minus a bonus, is the cost of a link."""

    persons: Floats  # (k + t, q)
    rows: Floats  # (m, q)
    bonus: Floats  # (m,)

    def rank_pairs(self, tried: Ints, own_rows: Ints, others: Ints) -> float:
        """Return the mean log rank of the own row of each tried person among ``others``."""
        from scipy.spatial.distance import cdist

        persons = self.persons[tried]
        own = ((persons - self.rows[own_rows]) ** 2).sum(axis=1) - self.bonus[own_rows]
        cost = cdist(persons, self.rows[others], "sqeuclidean") - self.bonus[others]
        better = (cost < own[:, None]).sum(axis=1) + 0.5 * (cost == own[:, None]).sum(axis=1)
        return float(np.mean(np.log1p(better)))

    def compute_costs(self, first_target: int) -> DistanceCosts:
        """Return the costs of the targets with every row."""
        targets = self.persons[first_target:]
        extra = np.sqrt(self.bonus.max() - self.bonus)[:, None]  # a constant minus the bonus
        return DistanceCosts(
            np.hstack([targets, np.zeros((len(targets), 1))]), np.hstack([self.rows, extra])
        )


def fit_linkers(
    pairs: Pairs, learned: Ints, chosen: Collection[LinkerSpec] | None = None
) -> Iterator[tuple[LinkerSpec, Linker | NoiseCosts]]:
    """Yield linkers fitted to some pairs; ``chosen``: only these."""
    for by_noise, fit in _BY_NOISE.items():
        if pairs.comparable is not None and (chosen is None or by_noise in chosen):
            yield by_noise, fit(*pairs.comparable, learned, pairs.rows[learned])
    for spec, persons, rows, errors in predict_points(pairs, learned, chosen):
        variance = (rows if spec.predicts_rows else persons).var(axis=0)
        for weights, weigh in _WEIGHTS.items():
            specs = [replace(spec, weights=weights, uses_odds=odds) for odds in (False, True)]
            specs = [each for each in specs if chosen is None or each in chosen]
            if specs:
                W = weigh(errors, variance)
                points = persons @ W, rows @ W
            for each in specs:
                bonus = measure_rarity(points[1]) if each.uses_odds else np.zeros(len(rows))
                yield each, Linker(*points, bonus)


def measure_rarity(rows: Floats) -> Floats:
    """Return how unusual each row is: a row that is near to everybody says little (log odds)."""
    centred = rows - rows.mean(axis=0)
    values, Q = decompose_symmetric(centred.T @ centred / len(centred))
    return np.asarray(((centred @ Q) ** 2 / np.maximum(values, 1.0)).sum(axis=1))


Points = tuple[LinkerSpec, Floats, Floats, Floats]  # persons, rows, errors of the learned pairs


def predict_points(
    pairs: Pairs, learned: Ints, chosen: Collection[LinkerSpec] | None
) -> Iterator[Points]:
    """Yield points in which persons and rows can be compared, without weights."""
    wanted = None if chosen is None else {remove_weights(spec) for spec in chosen}
    persons, released, rows = pairs.persons, pairs.released, pairs.rows[learned]
    for family in persons if pairs.comparable is not None else ():
        spec = LinkerSpec("", True, family, family)
        if wanted is None or spec in wanted:
            gaps = released[family][rows] - persons[family][learned]
            shift = gaps.mean(axis=0)
            yield spec, persons[family] + shift, released[family], gaps - shift
    for (name, fit), predicts_rows, given in product(
        _REGRESSIONS.items(), (True, False), _PREDICTED
    ):
        specs = [LinkerSpec(name, predicts_rows, given, each) for each in _PREDICTED[given]]
        specs = [spec for spec in specs if wanted is None or spec in wanted]
        if not specs or not can_fit(name, len(learned), given, persons[given].shape[1]):
            continue
        sides = (persons, learned), (released, rows)
        (inputs, known), (outputs, answers) = sides if predicts_rows else sides[::-1]
        tables = [outputs[spec.compared] for spec in specs]
        predict, errors = fit(inputs[given][known], np.hstack(tables)[answers])
        ends = np.cumsum([table.shape[1] for table in tables])[:-1]
        guesses = np.split(predict(inputs[given]), ends, axis=1)
        for spec, table, guess, error in zip(
            specs, tables, guesses, np.split(errors, ends, axis=1), strict=True
        ):
            yield (spec, guess, table, error) if predicts_rows else (spec, table, guess, error)


def remove_weights(spec: LinkerSpec) -> LinkerSpec:
    """Return what is predicted from what, without how it is weighted."""
    return LinkerSpec(spec.regression, spec.predicts_rows, spec.given, spec.compared)


def list_product_columns(pairs: int, n: int, d: int) -> Iterator[tuple[str, Ints]]:
    """Yield columns of which a direction in all products of two can be learned from pairs.

    If there are too many columns, any three of them are in one of the lists.
    """
    learned = 2 * min(pairs, _MAX_COMPARED_PAIRS) // 3

    def is_enough(columns: int) -> bool:
        features = columns * (columns + 3) // 2  # with the columns themselves
        return columns > 1 and learned >= _PAIRS_PER_FEATURE * features

    groups = np.array_split(np.arange(d), _PRODUCT_GROUPS)
    lists = [np.concatenate(chosen) for chosen in combinations(groups, 3)]
    if is_enough(d):
        yield "products", np.arange(d)
    elif is_enough(len(lists[0])) and len(lists) * n <= _MAX_PRODUCT_ROWS:
        yield from ((f"products {i + 1}", columns) for i, columns in enumerate(lists))


def can_fit(regression: str, pairs: int, given: str, features: int) -> bool:
    """Return whether a regression on this many features of a family can be fitted."""
    if regression == "by column" or given == "figures":
        return regression == "by column" and given in ("columns", "figures")
    return regression != "least squares" or pairs >= _PAIRS_PER_FEATURE * (features + 2)
