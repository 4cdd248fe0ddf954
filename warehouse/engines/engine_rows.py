"""Tables in Parquet parts, on which an engine runs the steps.

A part of a step is a range of canonical blocks, whatever files hold them. Results are merged in
block order, in the binary tree that one process would use: no byte depends on the engine, on the
number of its workers, or on the size of its parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Generic

from ppdm_core.model.rows import (
    BLOCK,
    Block,
    S,
    add_counts,
    join_states,
    merge_rest,
    regroup_blocks,
    slice_rows,
)
from ppdm_core.model.schema import Schema
from warehouse.engines._engine import Engine
from warehouse.engines._messages import pack_identity
from warehouse.parquet_parts import PartFile, PartRows, read_counts, read_rows, write_part

NAME_DIGITS = 16  # of the digest in a folder's name


@dataclass(frozen=True)
class BlockRange:
    """Blocks ``[first, last)`` of a table."""

    first: int
    last: int

    @property
    def name(self) -> str:
        return f"part-{self.first:09d}-{self.last:09d}.parquet"


@dataclass(frozen=True, eq=False)
class TableStep:
    """What every step on parts of a table needs to read them."""

    files: tuple[PartFile, ...]
    schema: Schema

    def read(self, part: BlockRange) -> Iterator[Block]:
        """Yield the canonical blocks of a part."""
        low = part.first * BLOCK
        rows = read_rows(self.files, self.schema, low, part.last * BLOCK)
        return regroup_blocks(rows, start=low)

    def read_first_row(self) -> Block:
        """Return a block of one row."""
        return slice_rows(next(self.read(BlockRange(0, 1))), 0, 1)


@dataclass(frozen=True, eq=False)
class MapStep(TableStep):
    """Writes the result of a step on a part to a file."""

    step: Callable[[Block], Block]
    result: Schema
    folder: str

    def __call__(self, part: BlockRange) -> None:
        write_part(map(self.step, self.read(part)), self.result, Path(self.folder) / part.name)

    def try_first_row(self) -> None:
        """Run the step on the first row."""
        self.step(self.read_first_row())


@dataclass(frozen=True, eq=False)
class ReduceStep(TableStep, Generic[S]):
    """Returns merged states of a part, each with its number of blocks."""

    step: Callable[[Block], S]
    merge: Callable[[S, S], S]

    def __call__(self, part: BlockRange) -> list[tuple[int, S]]:
        states = ((1, self.step(block)) for block in self.read(part))
        return join_states(states, self.merge, part.first)

    def try_first_row(self) -> None:
        """Run the step on the first row."""
        self.step(self.read_first_row())


class EngineRows(PartRows):
    """Rows in a folder that all workers of an engine see. A pickled copy has no engine.

    ``identity`` is a digest of everything that the rows follow from. The rows of a step have a
    folder that is named by it: parts that an earlier run left there are used.
    """

    def __init__(
        self,
        schema: Schema,
        folder: Path,
        engine: Engine,
        identity: str,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(schema, folder, counts)
        self.engine, self.identity = engine, identity

    def __reduce__(self) -> tuple[object, ...]:
        return PartRows, (self.schema, self.folder, self.counts)

    @cached_property
    def files(self) -> tuple[PartFile, ...]:
        return tuple(super().list_files())

    def list_files(self) -> list[PartFile]:
        return list(self.files)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return -(-self.n // BLOCK)

    def split(self, size: int) -> list[BlockRange]:
        """Return parts of some blocks each, on which the engine runs a step."""
        return [
            BlockRange(first, min(first + size, self.count)) for first in range(0, self.count, size)
        ]

    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S:
        job = ReduceStep(self.files, self.schema, step, merge)
        found = self.engine.run(job, self.split(self.engine.choose_part_blocks(self.count)))
        return merge_rest(join_states(chain.from_iterable(found), merge), merge)

    def map(self, step: Callable[[Block], Block], schema: Schema) -> EngineRows:
        """Write the result of the step to a folder next to this one."""
        identity = identify(self.identity, schema, step)
        folder, ranges = self.make_folder(f"rows-{identity[:NAME_DIGITS]}")
        remove_others(folder, ranges)
        missing = [part for part in ranges if not (folder / part.name).exists()]
        job = MapStep(self.files, self.schema, step, schema, str(folder))
        for _ in self.engine.run(job, missing):
            pass
        counts = dict(self.counts)
        for part in ranges:
            counts = add_counts(counts, read_counts(folder / part.name))
        return EngineRows(schema, folder, self.engine, identity, counts)

    def make_folder(self, name: str) -> tuple[Path, list[BlockRange]]:
        """Return the folder for the rows of a step, and its parts.

        Its name ends in the size of the parts: a run that continues another one has the same parts,
        whatever the number of workers is by then.
        """
        for folder in self.folder.parent.glob(f"{name}-*"):
            return folder, self.split(int(folder.name.rpartition("-")[2]))
        size = self.engine.choose_part_blocks(self.count)
        folder = self.folder.with_name(f"{name}-{size}")
        folder.mkdir(mode=0o700)
        return folder, self.split(size)


def identify(*parts: Any) -> str:
    """Return a digest of what rows follow from: earlier rows, the schema, and the step."""
    return hashlib.sha256(pack_identity(parts)).hexdigest()


def remove_others(folder: Path, ranges: Iterable[BlockRange]) -> None:
    """Remove what interrupted writes left."""
    wanted = {part.name for part in ranges}
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink(missing_ok=True)
