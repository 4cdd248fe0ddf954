"""Randomized response: categories that may not be true."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Ints, Keys
from ppdm_core.model.errors import BadInput, Defect
from ppdm_core.model.parameter_checks import is_number, reject
from ppdm_core.model.release import Guarantee, Public, Released, Response
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Fitted, Part, Sanitizer, code_bytes

KINDS = {"attribute", "record"}
SMALLEST, LARGEST = 1.001, 1e9  # outside, 128 bits or double precision would not be exact enough
DRAWS = 2**128  # equally likely
SPLIT_MARGIN = 1 - 2.0**-48  # more than rounding adds when a root is taken and multiplied out again


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Sanitizer):
    """Keeps each category by chance, and else puts any other one in its place.

    Of the k possible cells of a column the true one is released with probability
    gamma / (gamma + k - 1) and each other one with 1 / (gamma + k - 1). k counts the declared
    categories, and the empty cell where the column says missing = "keep". Columns are drawn
    apart, and an answer is drawn anew only when its own cell or its own column's settings change.

    **Parameters**:
    ``gamma``: by how much an answer may change the odds of any statement: { attribute = 3 } for
    every column, { attribute = { sex = 2, race = 4 } } for each by name, or { record = 1000 } for
    all columns of a record together, split evenly over them.

    **Public**: gamma and the categories of every column. With them ``estimate_frequencies`` gives
    the true frequencies and their variance.
    **Broken by**: ``record_linkage``, by somebody who compares categories, when gamma is large or
    columns are many: each answer adds to what is known of its person. Columns that say nearly the
    same act like several answers to one question. ``attribute_inference`` reads the last answer
    from a row that was found by the others.
    **Guarantee**: bounded amplification of one release: gamma of the column for a component and
    an attribute (the largest is told), the product over the columns for a record. All of them are
    reached, and never passed: the probabilities are whole numbers of 2^-128, rounded toward more
    noise.
    **References**: Warner, "Randomized response" (1965); Evfimievski, Gehrke, Srikant, "Limiting
    privacy breaches in privacy preserving data mining" (2003), where gamma comes from; Kairouz,
    Bonawitz, Ramage, "Discrete distribution estimation under local privacy" (2016), k answers.
    """

    name: ClassVar[str] = "randomized_response"
    accepts: ClassVar[frozenset[str]] = frozenset({"categorical"})
    row_aligned: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"gamma": {"attribute": 3}}

    gamma: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.gamma
        if not isinstance(given, Mapping) or len(given) != 1 or not set(given) <= KINDS:
            wanted = "a table such as { attribute = 3 } or { record = 1000 }"
            raise reject(self, "gamma", wanted, given)
        each = given.get("attribute")
        numbers = list(each.values()) if isinstance(each, Mapping) else list(given.values())
        if not numbers or not all(is_number(g) and SMALLEST <= g <= LARGEST for g in numbers):
            raise reject(self, "gamma", f"from {SMALLEST} to {LARGEST:,.0f}", given)

    @property
    def keeps_columns(self) -> bool:
        return True

    @property
    def learns(self) -> bool:
        return False

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        return [law(response) for response in self.responses(schema)]

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        """Every column by itself, as it is drawn."""

        def part(j: int, response: Response) -> Part:
            def consumed(block: Block) -> Keys:
                _, place_of = places(response.column)
                return code_bytes(place_of[block.C[:, j], None])

            return Part(digest(law(response)), consumed, math.log(response.gamma))

        return tuple(part(j, response) for j, response in enumerate(self.responses(schema)))

    def responses(self, schema: Schema) -> tuple[Response, ...]:
        columns = schema.categorical
        self.check_features(len(columns))
        for column in columns:
            check_choices(column)
        return tuple(map(Response, columns, self._gammas([column.name for column in columns])))

    def _gammas(self, names: Sequence[str]) -> list[float]:
        given = self.gamma.get("attribute")
        if given is None:
            split = math.exp(math.log(self.gamma["record"]) / len(names)) * SPLIT_MARGIN
            return [split] * len(names)
        if not isinstance(given, Mapping):
            return [float(given)] * len(names)
        for name in names:
            if name not in given:
                raise BadInput(
                    f"Column '{name}' has no gamma of its own.",
                    column=name,
                    remedy="Add it to { attribute = { ... } }, or give one number for all columns.",
                )
        for name in given:
            if name not in names:
                raise BadInput(
                    f"'gamma' names '{name}', which is not a categorical feature.",
                    column=name,
                    remedy="Correct its spelling, or remove it.",
                )
        return [float(given[name]) for name in names]

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        responses = self.responses(rows.schema)

        def step(block: Block) -> Block:
            C = np.empty_like(block.C)
            for j, response in enumerate(responses):
                code_at, place_of = places(response.column)
                check_codes(block.C[:, j], response.column)
                true = place_of[block.C[:, j]]
                fingerprint = digest(law(response))
                bits = noise.response_bits(block.key, true, self.name, fingerprint)
                C[:, j] = code_at[answers(true, bits, response)]
            return replace(block, C=C)

        return Released(
            rows=rows.map(step, rows.schema),
            public=Public(method=self.name, space="original", columns=(), responses=responses),
            atom=max(response.kept for response in responses),
        )

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        figures = [math.log(response.gamma) for response in self.responses(schema)]
        return Guarantee(
            "bounded",
            ln_component=max(figures),
            ln_attribute=max(figures),
            ln_record=math.fsum(figures),
            assumptions=(
                "One release of each cell, with answers that nobody outside can predict.",
                "The categories are declared, not taken from the records.",
            ),
        )


def check_choices(column: Categorical) -> None:
    if column.k < 2:
        raise BadInput(
            f"Column '{column.name}' has one category, so there is no other answer to give.",
            column=column.name,
            remedy='Declare all its categories, or give it the role "exclude".',
        )


def wrong_share(response: Response) -> int:
    """How many of the 2^128 draws each wrong answer gets: rounded up, so that gamma is never
    passed."""
    return math.ceil(DRAWS / (Fraction(response.gamma) + response.column.k - 1))


def law(response: Response) -> list[Any]:
    """What decides an answer, in plain values. The order in which categories are listed does not:
    it would draw second answers for the same release."""
    column = response.column
    return [column.name, sorted(column.categories), column.missing, str(wrong_share(response))]


def digest(plain: list[Any]) -> bytes:
    return hashlib.blake2b(json.dumps(plain).encode(), digest_size=32).digest()


def places(column: Categorical) -> tuple[Codes, Codes]:
    """The code at each place when cells are sorted by name, and the place of each code."""
    by_name = sorted(range(len(column.categories)), key=lambda code: column.categories[code])
    code_at = np.array(by_name + [-1] * column.missing, dtype=np.int32)  # (k,)
    place_of = np.zeros(len(column.categories) + 1, dtype=np.int32)
    place_of[code_at] = np.arange(column.k)  # that of the missing one is found at -1
    return code_at, place_of


def answers(true: Codes, bits: NDArray[np.uint64], response: Response) -> Ints:
    """The place that each record answers."""
    k = response.column.k
    other = drawn(bits, wrong_share(response), k)
    wrong = other + (other >= true)  # the places without the true one
    return np.where(other == k - 1, true, wrong)


def drawn(bits: NDArray[np.uint64], share: int, k: int) -> Ints:
    """Which wrong answer, 0 to k - 2, or k - 1 for the true one: U // share for U < share (k - 1).

    U is (high, low) words; ``share`` exceeds 2^64, so that no two limits have the same high word.
    """
    limits = [share * i for i in range(1, k)]
    high = np.array([limit >> 64 for limit in limits], dtype=np.uint64)
    low = np.array([limit & (2**64 - 1) for limit in limits], dtype=np.uint64)
    place = np.searchsorted(high, bits[:, 0], side="left")
    near = np.minimum(place, k - 2)
    place += (place < k - 1) & (high[near] == bits[:, 0]) & (low[near] <= bits[:, 1])
    return place


def check_codes(codes: Codes, column: Categorical) -> None:
    least = -1 if column.missing else 0
    if np.any((codes < least) | (codes >= len(column.categories))):
        raise Defect(f"Column '{column.name}' holds a code without a category.", column=column.name)


def estimate_frequencies(counts: Floats | Ints, gamma: float, k: int) -> tuple[Floats, Floats]:
    """True frequencies of the k answers from counts of the released ones, and their variances.

    Both are unbiased. The variances are those of the random answers, for the frequencies among
    the released records; who asks for the people these were drawn from adds f (1 - f) / n. An
    estimate may fall a little outside 0 to 1.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n = counts.sum()
    if k < 2 or counts.shape != (k,) or not n > 0 or not gamma > 1:
        raise BadInput(
            "Frequencies need a count for each of k answers, 2 or more, and a gamma above 1.",
            remedy="Count the missing answers, too, if the column has them.",
        )
    p, q = gamma / (gamma + k - 1), 1 / (gamma + k - 1)
    share = counts / n
    variance = (p * q + share * (1 - p - q)) / (n * (p - q) ** 2)
    return (share - q) / (p - q), variance
