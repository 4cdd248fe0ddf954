"""What each goal is measured on: which answers count, against which truth and baseline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.scores import Ends, pick_worst
from ppdm_core.audit.simulation import Played, Truth
from ppdm_core.metrics import column_mean_guess
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import Goal
from ppdm_core.model.errors import NotApplicable

Mask = NDArray[np.bool_]
_LEAST_OTHERS = 0.5  # for each person in the release


class Scorer(ABC):
    """The answers of one attack on all draws.

    A unit is what an answer is about: a released row, or a target. Records that the attacker
    knew before do not count: their units are numbered -1.
    """

    has_control = False  # the baseline is measured on people outside the release

    def __init__(self, truth: Truth, played: list[Played], epsilon: float, scenario: str) -> None:
        self.truth, self.played, self.epsilon, self.scenario = truth, played, epsilon, scenario

    @property
    def names(self) -> list[str]:
        return list(self.played[0].answers(self.scenario))

    @abstractmethod
    def units(self, one: Played) -> Ints:
        """The record behind each unit."""

    @abstractmethod
    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float: ...

    @abstractmethod
    def baseline(self, metric: Any, name: str) -> float: ...

    def answer(self, one: Played, name: str) -> NDArray[Any]:
        return one.answers(self.scenario)[name]

    def group(self, one: Played, records: Ints) -> Mask:
        """The units that tell how these people fare."""
        return np.isin(self.units(one), records)

    def pool(self) -> Ints:
        """Everybody who counts in some draw."""
        found = np.unique(np.concatenate([self.units(one) for one in self.played]))
        return found[found >= 0]

    def values(self, metric: Any, name: str, records: Ints | None = None) -> list[float]:
        """One figure for each draw; a draw in which none of these people have a unit has none."""
        found = []
        for one in self.played:
            units = self.units(one)
            keep = units >= 0 if records is None else np.isin(units, records)
            if self.is_enough(one, keep):
                found.append(self.measure(metric, one, name, keep))
        return found

    def is_enough(self, one: Played, keep: Mask) -> bool:
        return bool(keep.any())

    def value_of_group(self, metric: Any, name: str, records: Ints) -> float | None:
        masks = [(one, self.group(one, records)) for one in self.played]
        try:
            found = [self.measure(metric, one, name, keep) for one, keep in masks if keep.any()]
        except NotApplicable:  # nothing of these people can be measured, say because they are zero
            return None
        return float(np.mean(found)) if found else None

    def n(self, name: str) -> int:
        """As how many people the answers count: draws of the same ones are no further evidence."""
        units = np.concatenate([self.units(one) for one in self.played])
        return people_behind(units[units >= 0])

    def control_n(self, name: str) -> int | None:
        return None

    def ends(self, metric: Any, name: str) -> Ends | None:
        """The interval at a level, where the metric has one of its own."""
        return None


class Rows(Scorer):
    """Units are released rows."""

    def units(self, one: Played) -> Ints:
        records = one.draw.records
        return np.where(np.isin(records, one.cast.unknown), records, -1)


class Reconstructed(Rows):
    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        truth, X_hat = self.truth, self.answer(one, name)[keep]
        X = truth.X[one.draw.records[keep]]
        return float(metric.measure(X, X_hat, truth.schema, self.epsilon, truth.spread))

    def baseline(self, metric: Any, name: str) -> float:
        truth, X = self.truth, self.truth.X[self.played[0].cast.unknown]
        return best_constant(
            metric,
            truth.X,
            lambda x: metric.measure(
                X, np.broadcast_to(x, X.shape), truth.schema, self.epsilon, truth.spread
            ),
        )


class Lengths(Rows):
    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        length = np.linalg.norm(self.truth.X[one.draw.records[keep]], axis=1)
        return float(metric.measure(length, self.answer(one, name)[keep], self.epsilon))

    def baseline(self, metric: Any, name: str) -> float:
        length = np.linalg.norm(self.truth.X, axis=1)
        asked = length[self.played[0].cast.unknown]
        return best_constant(
            metric,
            length[:, None],
            lambda x: metric.measure(asked, np.full(len(asked), x[0]), self.epsilon),
        )


class Sourced(Rows):
    def units(self, one: Played) -> Ints:
        records = one.draw.records
        return np.where(np.isin(records, one.cast.targets), records, -1)

    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        claims = one.claims[name][keep]
        return float(metric.measure(self.answer(one, name)[keep], claims, self.units(one)[keep]))

    def baseline(self, metric: Any, name: str) -> float:
        return float(metric.baseline(len(self.played[0].cast.targets)))


class Targets(Scorer):
    """Units are the people whom the attacker asks about."""

    def units(self, one: Played) -> Ints:
        return one.cast.targets


class Linked(Targets):
    def units(self, one: Played) -> Ints:
        """Whoever was never drawn has no row that could be found."""
        targets = one.cast.targets
        return np.where(np.isin(targets, one.draw.records), targets, -1)

    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        return float(metric.measure(self.answer(one, name)[keep], one.cast.targets[keep]))

    def baseline(self, metric: Any, name: str) -> float:
        """A row picked blindly, of those with the person's label if that is known."""
        one = self.played[0]
        rows, people = self.truth.label[np.unique(one.draw.records)], self.units(one)
        if self.scenario == "partial":
            return float(metric.baseline(len(rows)))
        wanted = self.truth.label[people[people >= 0]]
        return float(np.mean([metric.baseline(np.sum(rows == code)) for code in wanted]))


class Members(Targets):
    def is_enough(self, one: Played, keep: Mask) -> bool:
        kinds = one.cast.is_member[keep]
        return bool(kinds.any() and not kinds.all())

    def group(self, one: Played, records: Ints) -> Mask:
        """These members against all who are not in the release."""
        of_them = np.isin(one.cast.targets, records) & one.cast.is_member
        return of_them | ~one.cast.is_member if of_them.any() else of_them

    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        return float(metric.measure(self.answer(one, name)[keep], one.cast.is_member[keep]))

    def baseline(self, metric: Any, name: str) -> float:
        return float(np.mean([metric.baseline(one.cast.is_member) for one in self.played]))

    def ends(self, metric: Any, name: str) -> Ends:
        played = [one for one in self.played if self.is_enough(one, self.units(one) >= 0)]
        asked = [(self.answer(one, name), one.cast.is_member) for one in played]
        inside = [one.cast.targets[one.cast.is_member] for one in played]
        outside = [one.cast.targets[~one.cast.is_member] for one in played]
        members, others = (people_behind(np.concatenate(each)) for each in (inside, outside))
        return partial(metric.interval, asked, members, others)


class Controlled(Targets):
    """The members count; the same on people outside the release is the baseline."""

    has_control = True

    def units(self, one: Played) -> Ints:
        return np.where(one.cast.is_member, one.cast.targets, -1)

    def baseline(self, metric: Any, name: str) -> float:
        masks = [(one, ~one.cast.is_member) for one in self.played]
        return float(np.mean([self.measure(metric, one, name, keep) for one, keep in masks]))

    def control_n(self, name: str) -> int:
        return people_behind(
            np.concatenate([one.cast.targets[~one.cast.is_member] for one in self.played])
        )


class Inferred(Controlled):
    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        truth = self.truth.table[one.cast.targets[keep], :-1]
        guess = self.answer(one, name)[keep]
        return float(metric.measure(guess, truth, self.truth.schema, self.epsilon))


class Paired(Controlled):
    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        return float(metric.measure(self.answer(one, name)[keep], one.cast.targets[keep]))


class SingledOut(Scorer):
    """Statements are about nobody in particular before they are tried on everybody."""

    has_control = True

    def units(self, one: Played) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def values(self, metric: Any, name: str, records: Ints | None = None) -> list[float]:
        return [self.measure(metric, one, name, self.inside(one)) for one in self.played]

    def measure(self, metric: Any, one: Played, name: str, keep: Mask) -> float:
        return float(metric.measure(self.answer(one, name), self.truth.table[keep]))

    def baseline(self, metric: Any, name: str) -> float:
        found = []
        for one in self.played:
            inside = self.inside(one)
            if self.others_for_one(inside) < _LEAST_OTHERS:
                raise NotApplicable("singling_out needs about as many people outside the release.")
            members, others = self.truth.table[inside], self.truth.table[~inside]
            found.append(float(metric.baseline(self.answer(one, name), members, others)))
        return float(np.mean(found))

    def inside(self, one: Played) -> Mask:
        members = one.draw.members
        assert members is not None
        return np.isin(np.arange(len(self.truth.X)), members)

    def others_for_one(self, inside: Mask) -> float:
        """How many people outside there are for one in the release."""
        return float(np.sum(~inside) / np.sum(inside))

    def n(self, name: str) -> int:
        return min(len(self.answer(one, name)) for one in self.played)

    def control_n(self, name: str) -> int:
        """What fewer people outside tell is scaled up, and so are its errors."""
        fewest = min(self.others_for_one(self.inside(one)) for one in self.played)
        return max(1, int(self.n(name) * min(1.0, fewest)))


SCORERS: dict[Goal, type[Scorer]] = {
    "reconstruct": Reconstructed,
    "norms": Lengths,
    "link": Linked,
    "source": Sourced,
    "member": Members,
    "infer": Inferred,
    "pair": Paired,
    "single_out": SingledOut,
}
OUTSIDERS_NEEDED = frozenset({"member", "infer", "pair", "single_out"})


def best_constant(metric: Any, X: Floats, measure: Callable[[Floats], float]) -> float:
    """What somebody gets who ignores the release and answers one value for everybody.

    That person knows the population: its means, its medians and its commonest values (the middle
    one of several that are as common), and which of them serves best.
    """
    guesses = {
        "mean": column_mean_guess(X)[0],
        "median": np.median(X, axis=0),
        "mode": np.array([commonest(column) for column in X.T]),
    }
    found = {name: float(measure(x)) for name, x in guesses.items()}
    return found[pick_worst(found, metric.better)]


def commonest(column: Floats) -> float:
    value, count = np.unique(column, return_counts=True)
    modes = value[count == count.max()]
    return float(modes[len(modes) // 2])


def people_behind(records: Ints) -> int:
    """As how many single rows the rows of these records count: copies are no further evidence."""
    _, copies = np.unique(records, return_counts=True)
    return int(copies.sum() ** 2 // (copies**2).sum()) if len(copies) else 0
