"""The base classes of all sinks: further places and formats of a published release.

The folder of a version always holds `data.parquet`, which was attacked and scanned. A sink gets
the rows of exactly that file, and what it wrote is read back and compared with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from warehouse.sources import Option

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse.columns import Column


@dataclass(frozen=True)
class SinkSettings:
    """A sink of a release file."""

    kind: str  # a key of SINKS
    options: Mapping[str, str]


@dataclass(frozen=True)
class Delivery:
    """One version in one sink on a server; it holds no password."""

    kind: str  # a key of SINKS
    options: Mapping[str, str]
    dataset: str
    release_id: str
    version: str  # "0003"
    token: str  # that outsiders cannot guess; the same in every attempt

    @property
    def name(self) -> str:
        """The version as one word."""
        return f"{self.dataset}_{self.version}"


class Sink(ABC):
    """One kind of sink."""

    name: ClassVar[str]  # the 'kind' in [[sinks]]
    options: ClassVar[Mapping[str, Option]] = {}

    def check_options(self, options: Mapping[str, str]) -> None:  # noqa: B027
        """Raise BadInput for options that do not fit together."""

    def check_columns(  # noqa: B027
        self, columns: Sequence[Column], options: Mapping[str, str]
    ) -> None:
        """Raise BadInput for columns that cannot be written."""


class FileSink(Sink):
    """Further files in the folder of the version, which holds `data.parquet` already."""

    @abstractmethod
    def write(self, folder: Path, options: Mapping[str, str]) -> None:
        """Write the rows of `data.parquet` to new files, a block at a time."""

    @abstractmethod
    def read(self, folder: Path, options: Mapping[str, str]) -> Iterator[pa.Table]:
        """Yield the rows that were written, in blocks and in any order.

        Numbers are doubles, and text is strings. What is no table may raise an ArrowException.
        """


class ServerSink(Sink):
    """A place on a server. Every step may be repeated after a crash.

    ``stage`` writes everything where recipients cannot read it. ``expose`` makes it readable, at
    once, after the version is recorded as published. ``remove`` follows a withdrawal.
    """

    @abstractmethod
    def check_target(self, delivery: Delivery) -> None:
        """Raise BadInput if the server, the rights or the target do not allow a delivery."""

    @abstractmethod
    def describe_place(self, delivery: Delivery) -> dict[str, Any]:
        """Return what the manifest says of the place."""

    @abstractmethod
    def stage(self, delivery: Delivery, folder: Path) -> None:
        """Write the files or rows in ``folder``, unreadable for recipients."""

    @abstractmethod
    def read_staged(self, delivery: Delivery, folder: Path) -> Iterator[pa.Table]:
        """Yield the rows that ``stage`` wrote, in blocks and in any order.

        Raise Refused if another file in ``folder`` was not written as it is.
        """

    @abstractmethod
    def discard(self, delivery: Delivery) -> None:
        """Remove what ``stage`` wrote, for a version that is not published."""

    @abstractmethod
    def expose(self, delivery: Delivery, manifest: bytes) -> None:
        """Make what was staged readable for recipients, with its manifest.

        Raise BadInput if something else is there.
        """

    @abstractmethod
    def remove(self, delivery: Delivery, notice: bytes) -> None:
        """Remove the rows, and leave the notice in place of the manifest.

        What another delivery put there, such as that of another home, stays.
        """
