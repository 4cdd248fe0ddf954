"""Randomized response: each category is released unchanged or replaced, by chance."""

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
from ppdm_core.model.parameter_checks import is_number, parameter_error
from ppdm_core.model.release import Guarantee, PublicParameters, Released, Response
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Direction, Fitted, Part, Sanitizer, encode_codes
from ppdm_core.sanitizers._sweep import Axes, SweepScope, list_gammas

GAMMA_KINDS = {"attribute", "record"}
MIN_GAMMA, MAX_GAMMA = 1.001, 1e9  # outside, 128 bits or doubles are not exact enough
DRAW_COUNT = 2**128  # equally likely draws
SPLIT_MARGIN = 1 - 2.0**-48  # covers the rounding of a root and its powers


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Sanitizer):
    """Releases each category unchanged by chance, and any other one otherwise.

    Of the k possible cells of a column the true one is released with probability
    gamma / (gamma + k - 1) and each other one with 1 / (gamma + k - 1). k counts the declared
    categories, and the empty cell if the column has missing = "keep". Columns are drawn
    independently, and a response is redrawn only if its own cell or its column's settings change.

    **Parameters**:
    ``gamma``: the largest factor by which a response may change the odds of any statement:
    { attribute = 3 } for every column, { attribute = { sex = 2, race = 4 } } for each by name, or
    { record = 1000 } for all columns of a record together, split evenly over them.

    **Public**: gamma and the categories of every column. With them ``estimate_frequencies``
    estimates the true frequencies and their variance.
    **Broken by**: ``record_linkage``, by an attacker who compares categories, when gamma is large
    or columns are many: each response adds information about the person. Columns with nearly the
    same content act like several responses to one question. ``attribute_inference`` reads one
    response from a row that was identified by the others.
    **Guarantee**: bounded amplification of one release: gamma of the column for a component and
    an attribute (the largest is reported), the product over the columns for a record. All bounds
    are reached and never exceeded: the probabilities are multiples of 2^-128, rounded toward more
    noise. If rows are dropped because of their values, the bound holds only among values that are
    kept.
    **References**: Warner, "Randomized response" (1965); Evfimievski, Gehrke, Srikant, "Limiting
    privacy breaches in privacy preserving data mining" (2003), for gamma; Kairouz,
    Bonawitz, Ramage, "Discrete distribution estimation under local privacy" (2016), for k
    responses.
    """

    name: ClassVar[str] = "randomized_response"
    accepts: ClassVar[frozenset[str]] = frozenset({"categorical"})
    is_usual: ClassVar[bool] = True
    row_aligned: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {"gamma": {"attribute": 3}}
    more_private: ClassVar[Mapping[str, Direction]] = {"gamma": "lower"}

    gamma: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.gamma
        if not isinstance(given, Mapping) or len(given) != 1 or not set(given) <= GAMMA_KINDS:
            wanted = "a table such as { attribute = 3 } or { record = 1000 }"
            raise parameter_error(self, "gamma", wanted, given)
        each = given.get("attribute")
        numbers = list(each.values()) if isinstance(each, Mapping) else list(given.values())
        if not numbers or not all(is_number(g) and MIN_GAMMA <= g <= MAX_GAMMA for g in numbers):
            raise parameter_error(self, "gamma", f"from {MIN_GAMMA} to {MAX_GAMMA:,.0f}", given)

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        ((unit, present),) = given["gamma"].items()
        if scope.gamma is not None:
            unit, present = "record", scope.gamma
        if isinstance(present, Mapping):  # by column: all columns are moved together
            return {"noise": [{}]}
        return {"noise": [{"gamma": {unit: gamma}} for gamma in list_gammas(scope, present)]}

    @property
    def keeps_columns(self) -> bool:
        return True

    @property
    def learns(self) -> bool:
        return False

    def fit(self, rows: Rows) -> Fitted:
        return {}

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        return [describe_mechanism(response) for response in self.make_responses(schema)]

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        """Return one part per column, because each column has its own draw."""

        def part(j: int, response: Response) -> Part:
            def consumed(block: Block) -> Keys:
                _, place_of = sort_cells(response.column)
                return encode_codes(place_of[block.C[:, j], None])

            return Part(
                compute_digest(describe_mechanism(response)), consumed, math.log(response.gamma)
            )

        return tuple(part(j, response) for j, response in enumerate(self.make_responses(schema)))

    def make_responses(self, schema: Schema) -> tuple[Response, ...]:
        """Return the response of every categorical column."""
        columns = schema.categorical
        self.check_features(len(columns))
        for column in columns:
            check_has_alternatives(column)
        return tuple(
            map(Response, columns, self._resolve_gammas([column.name for column in columns]))
        )

    def _resolve_gammas(self, names: Sequence[str]) -> list[float]:
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
        responses = self.make_responses(rows.schema)

        def step(block: Block) -> Block:
            C = np.empty_like(block.C)
            for j, response in enumerate(responses):
                code_at, place_of = sort_cells(response.column)
                check_codes(block.C[:, j], response.column)
                true = place_of[block.C[:, j]]
                fingerprint = compute_digest(describe_mechanism(response))
                bits = noise.response_bits(block.key, true, self.name, fingerprint)
                C[:, j] = code_at[draw_responses(true, bits, response)]
            return replace(block, C=C)

        return Released(
            rows=rows.map(step, rows.schema),
            public=PublicParameters(
                method=self.name, space="original", columns=(), responses=responses
            ),
            atom=max(response.keep_probability for response in responses),
        )

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        figures = [math.log(response.gamma) for response in self.make_responses(schema)]
        weaker = self.list_weaker_promises(schema)
        return Guarantee(
            "bounded_given_basis" if weaker else "bounded",
            ln_component=max(figures),
            ln_attribute=max(figures),
            ln_record=math.fsum(figures),
            assumptions=(
                "One release of each cell, with responses that no outsider can predict.",
                "The categories are declared, not taken from the records.",
                *weaker,
            ),
        )


def check_has_alternatives(column: Categorical) -> None:
    """Raise BadInput if the column has fewer than two possible cells."""
    if column.k < 2:
        raise BadInput(
            f"Column '{column.name}' has one category, so there is no other response.",
            column=column.name,
            remedy='Declare all its categories, or give it the role "exclude".',
        )


def count_wrong_draws(response: Response) -> int:
    """Return how many of the 2^128 draws each wrong response gets.

    The count is rounded up, so that gamma is never exceeded.
    """
    return math.ceil(DRAW_COUNT / (Fraction(response.gamma) + response.column.k - 1))


def describe_mechanism(response: Response) -> list[Any]:
    """Return what determines a response, in plain values.

    Categories are sorted: the order in which they are listed must not give second responses for
    the same release.
    """
    column = response.column
    return [
        column.name,
        sorted(column.categories),
        column.missing,
        str(count_wrong_draws(response)),
    ]


def compute_digest(plain: list[Any]) -> bytes:
    """Return the 32-byte digest of plain values."""
    return hashlib.blake2b(json.dumps(plain).encode(), digest_size=32).digest()


def sort_cells(column: Categorical) -> tuple[Codes, Codes]:
    """Return the code at each place when cells are sorted by name, and the place of each code."""
    by_name = sorted(range(len(column.categories)), key=lambda code: column.categories[code])
    code_at = np.array(by_name + [-1] * column.missing, dtype=np.int32)  # (k,)
    place_of = np.zeros(len(column.categories) + 1, dtype=np.int32)
    place_of[code_at] = np.arange(column.k)  # the place of the missing cell is at -1
    return code_at, place_of


def draw_responses(true: Codes, bits: NDArray[np.uint64], response: Response) -> Ints:
    """Return the place of each record's response."""
    k = response.column.k
    other = select_responses(bits, count_wrong_draws(response), k)
    wrong = other + (other >= true)  # places except the true one
    return np.where(other == k - 1, true, wrong)


def select_responses(bits: NDArray[np.uint64], share: int, k: int) -> Ints:
    """Return the wrong response, 0 to k - 2, or k - 1 for the true one.

    It is U // share for U < share (k - 1). U is (high, low) words; ``share`` exceeds 2^64, so that
    no two limits have the same high word.
    """
    limits = [share * i for i in range(1, k)]
    high = np.array([limit >> 64 for limit in limits], dtype=np.uint64)
    low = np.array([limit & (2**64 - 1) for limit in limits], dtype=np.uint64)
    place = np.searchsorted(high, bits[:, 0], side="left")
    near = np.minimum(place, k - 2)
    place += (place < k - 1) & (high[near] == bits[:, 0]) & (low[near] <= bits[:, 1])
    return place


def check_codes(codes: Codes, column: Categorical) -> None:
    """Raise Defect if a code has no category."""
    least = -1 if column.missing else 0
    if np.any((codes < least) | (codes >= len(column.categories))):
        raise Defect(f"Column '{column.name}' holds a code without a category.", column=column.name)


def estimate_frequencies(counts: Floats | Ints, gamma: float, k: int) -> tuple[Floats, Floats]:
    """Estimate the true frequencies of the k cells from released counts, and their variances.

    Both are unbiased. The variances are those of the random responses, for the frequencies among
    the released records; for the population that the records were drawn from, add f (1 - f) / n.
    An estimate may fall slightly outside 0 to 1.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n = counts.sum()
    if k < 2 or counts.shape != (k,) or not n > 0 or not gamma > 1:
        raise BadInput(
            "Frequencies need a count for each of k cells, 2 or more, and a gamma above 1.",
            remedy="Include the count of missing cells if the column has them.",
        )
    p, q = gamma / (gamma + k - 1), 1 / (gamma + k - 1)
    share = counts / n
    variance = (p * q + share * (1 - p - q)) / (n * (p - q) ** 2)
    return (share - q) / (p - q), variance
