"""Sanitizers with one bug each, for the checks to find."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Block, Rows, select_rows
from ppdm_core.numerics.linear_map import project
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from ppdm_core.sanitizers.randomized_response import RandomizedResponse

Change = Callable[[Block], Block]


def make_sound() -> PcaLaplace:
    return PcaLaplace(components=3, b=0.3)


def change_blocks(released: Released, change: Change) -> Released:
    rows = released.rows
    return replace(released, rows=rows.map(change, rows.schema))


def shift_values(released: Released, shift: Any) -> Released:
    return change_blocks(released, lambda block: replace(block, X=block.X + shift))


@dataclass(frozen=True, kw_only=True)
class Sound(PcaLaplace):
    """No section of this docstring says what it should."""

    components: Any = 3
    b: float | None = 0.3

    def sanitize(self, rows: Rows, noise: Noise, fitted: Any) -> Released:
        return self.spoil(super().sanitize(rows, noise, fitted), rows)

    def spoil(self, released: Released, rows: Rows) -> Released:
        return released


class AdvisesLess(Sound):
    more_private = {"b": "lower"}  # noqa: RUF012


class AdvisesNothing(Sound):
    more_private = {}  # noqa: RUF012


class IgnoresItsKey(Sound):
    def sanitize(self, rows, noise, fitted):
        return super().sanitize(rows, Noise(bytes(32)), fitted)


class DrawsAnotherKey(Sound):
    def sanitize(self, rows, noise, fitted):
        return super().sanitize(rows, Noise(os.urandom(32)), fitted)


class WritesItsInput(Sound):
    def spoil(self, released, rows):
        for block in rows.blocks():
            block.X[0, 0] += 1.0
        return released


class MovesGlobalState(Sound):
    def spoil(self, released, rows):
        np.random.random()
        return released


class ReadsGlobalState(Sound):
    def spoil(self, released, rows):
        return shift_values(released, float(np.random.get_state()[1][1]))


class FitsTheFirstChunk(Sound):
    def fit(self, rows):
        chunk = getattr(rows, "size", rows.n)
        return {**super().fit(rows), "learned from": chunk}


class CountsWithinParts(Sound):
    """Numbers rows from the start of their block when they come from disk."""

    def spoil(self, released, rows):
        from_disk = not hasattr(rows, "whole")

        def change(block: Block) -> Block:
            first = 0 if from_disk else block.start
            return replace(block, X=block.X + np.arange(first, first + block.n)[:, None])

        return change_blocks(released, change)


class NumbersItsBlocks(Sound):
    """Moves rows by the number of blocks that its step was called with before."""

    def spoil(self, released, rows):
        calls = itertools.count()
        return change_blocks(released, lambda block: replace(block, X=block.X + next(calls)))


class CountsOutsideTheBlock(Sound):
    """Counts rows in a variable of its own, which stays empty if steps run elsewhere."""

    def spoil(self, released, rows):
        seen: dict[int, int] = {}

        def change(block: Block) -> Block:
            seen[block.start] = block.n
            return block

        made = change_blocks(released, change)
        return replace(made, fit_counts={"rows seen": sum(seen.values())})


class NumbersItsCounts(Sound):
    """Its counts grow with every call."""

    def spoil(self, released, rows):
        calls = itertools.count()
        return change_blocks(released, lambda block: replace(block, counts={"calls": next(calls)}))


class CentresEachBlock(Sound):
    def spoil(self, released, rows):
        return change_blocks(
            released, lambda block: replace(block, X=block.X - block.X.mean(axis=0))
        )


class KeysByPosition(Sound):
    def sanitize(self, rows, noise, fitted):
        def positions(block: Block) -> Block:
            key = np.zeros((block.n, 16), dtype=np.uint8)
            places = np.arange(block.start, block.start + block.n, dtype="<u8")
            key[:, :8] = places.view(np.uint8).reshape(block.n, 8)
            return replace(block, key=key)

        return super().sanitize(rows.map(positions, rows.schema), noise, fitted)


class ReturnsRowsVerbatim(Sound):
    def spoil(self, released, rows):
        public = PublicParameters(self.name, "original", rows.schema.names)
        return Released(rows, public, atom=released.atom)


class ReturnsSomeRowsVerbatim(Sound):
    """Every twentieth record leaves as it came."""

    def spoil(self, released, rows):
        X = np.concatenate([block.X for block in rows.blocks()])
        noisy = np.arange(len(X)) % 20 > 0
        Y = np.where(noisy[:, None], X + 0.1 * np.sin(1e4 * X), X)
        public = PublicParameters(self.name, "original", rows.schema.names)
        kept = rows.map(lambda block: replace(block, X=Y[block.start :][: block.n]), rows.schema)
        return Released(kept, public, atom=released.atom)


class KeepsCategories(RandomizedResponse):
    """Every answer is the true one."""

    def sanitize(self, rows, noise, fitted):
        return replace(super().sanitize(rows, noise, fitted), rows=rows)


class HidesCategories(RandomizedResponse):
    """It releases a column that its public parameters do not declare."""

    def sanitize(self, rows, noise, fitted):
        released = super().sanitize(rows, noise, fitted)
        declared = released.public.responses[:1]
        return replace(released, public=replace(released.public, responses=declared))


class ForgetsSomeNoise(Sound):
    """One component of every fiftieth record gets none."""

    def spoil(self, released, rows):
        X = np.concatenate([block.X for block in rows.blocks()])
        assert released.public.grid is not None
        g = released.public.grid
        clean = np.rint(project(released.public, X) / g) * g

        def change(block: Block) -> Block:
            Y = block.X.copy()
            Y[::50, 0] = clean[block.start :][: block.n][::50, 0]
            return replace(block, X=Y)

        return change_blocks(released, change)


class ReleasesNan(Sound):
    def spoil(self, released, rows):
        return shift_values(released, np.array([0.0, math.nan, 0.0]))


class LosesARow(Sound):
    def spoil(self, released, rows):
        def change(block: Block) -> Block:
            return select_rows(block, np.arange(1, block.n))

        return change_blocks(released, change)


class SwapsRows(Sound):
    def spoil(self, released, rows):
        return change_blocks(
            released, lambda block: replace(block, X=block.X[::-1], key=block.key[::-1])
        )


class DeclaresOtherColumns(Sound):
    def spoil(self, released, rows):
        return replace(released, public=replace(released.public, columns=("a", "b")))


class PublishesAnotherName(Sound):
    def spoil(self, released, rows):
        return replace(released, public=replace(released.public, method="identity"))


class RaisesItsOwnError(Sound):
    def fit(self, rows):
        raise ValueError("array must not contain infs or NaNs")


class QuotesAValue(Sound):
    def fit(self, rows):
        raise BadInput(f"The value {next(iter(rows.blocks())).X.max()} is too large.")


class SaysNoSentence(Sound):
    def fit(self, rows):
        raise BadInput("bad")


class IgnoresItsLevel(Sound):
    """Its noise does not grow, whatever b says."""

    def sanitize(self, rows, noise, fitted):
        return make_sound().sanitize(rows, noise, fitted)


class PromisesWithoutBound(Sound):
    def guarantee(self, schema, fitted):
        return Guarantee("empirical", 1.0, 2.0, 3.0, ("None.",))


class PromisesInfinity(Sound):
    def guarantee(self, schema, fitted):
        return Guarantee("bounded", 1.0, 2.0, math.inf, ("None.",))


class PromisesLessThanItsPart(Sound):
    def guarantee(self, schema, fitted):
        return Guarantee("bounded", 1.0, 4.0, 3.0, ("None.",))


class PromisesOnNothing(Sound):
    def guarantee(self, schema, fitted):
        return replace(super().guarantee(schema, fitted), assumptions=())


class PromisesUnconditionally(Sound):
    """It says that rows are dropped, and still calls its bound unconditional."""

    def guarantee(self, schema, fitted):
        return replace(super().guarantee(schema, fitted), kind="bounded")


class HidesItsConditions(Sound):
    def guarantee(self, schema, fitted):
        return replace(super().guarantee(schema, fitted), assumptions=("One release.",))


class ChargesByItsFirstColumn(Sound):
    def parts(self, schema, fitted):
        (part,) = super().parts(schema, fitted)
        return (replace(part, consumed=lambda block: part.consumed(block)[:, :8]),)


class ChargesByTheTable(Sound):
    def parts(self, schema, fitted):
        (part,) = super().parts(schema, fitted)

        def consumed(block: Block) -> Any:
            total = np.array([[block.X.sum()]]).view(np.uint8)
            return np.concatenate([part.consumed(block), np.repeat(total, block.n, 0)], axis=1)

        return (replace(part, consumed=consumed),)


class ChargesHalf(Sound):
    def parts(self, schema, fitted):
        (part,) = super().parts(schema, fitted)
        return (replace(part, ln_record=part.ln_record / 2),)


class BrokenByUnknownAttack(Sound):
    """All sections are there.

    **Public**: all.
    **Broken by**: ``magic``.
    **Guarantee**: none.
    **References**: none.
    """


@dataclass(frozen=True, kw_only=True)
class HidesAParameter(Sound):
    """All sections are there.

    **Public**: all.
    **Broken by**: ``shrinkage``.
    **Guarantee**: none.
    **References**: none.
    """

    hidden: float = 0.0


class TakesWhatItGets(Sound):
    @classmethod
    def from_parameters(cls, parameters):
        return cls(**parameters)


class TakesAnything(Sound):
    @classmethod
    def from_parameters(cls, parameters):
        return cls()
