"""The settings of one release, which every task receives, and access to its home and its run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import Refused
from ppdm_core.model.policy import Policy
from tasks.progress import log_progress
from warehouse.columns import Column, Source
from warehouse.database import Run, Store, get_run
from warehouse.engines import EngineSettings
from warehouse.expectations import Expectation
from warehouse.home import Home
from warehouse.sinks import SinkSettings
from warehouse.transaction import Transaction

LOCAL = EngineSettings()

if TYPE_CHECKING:
    from ppdm_core.sanitizers import Sanitizer


@dataclass(frozen=True)
class ReleaseContext:
    """The checked settings of one release file; no task reads the file itself."""

    folder: str  # of the release file: relative paths start here
    file_digest: str
    home: str
    dataset: str
    owner: str
    audience: str
    source: Source
    columns: tuple[Column, ...]
    method: str
    parameters: dict[str, Any]
    policy: Policy
    sinks: tuple[SinkSettings, ...] = ()
    record_id: str | None = None
    keep_raw: int = 1
    expectations: tuple[Expectation, ...] = ()
    may_tune: bool = True  # settings may be chosen on the data
    shared_fit: dict[str, Any] | None = None  # what sites that release together agreed on
    common: tuple[int, ...] | None = field(default=None, repr=False)  # places of the records to
    # release, if parties with other columns have only these persons in common; None: all
    engine: EngineSettings = LOCAL
    file: str = "{}"  # the release file itself, as JSON: a REVIEW is published with it

    def open_store(self) -> Store:
        """Return the warehouse of the home."""
        return Store(Home(Path(self.home)), say=log_progress)

    def make_sanitizer(self) -> Sanitizer:
        """Return the method with its parameters, or raise BadInput if they are not valid."""
        from ppdm_core.sanitizers import make_sanitizer

        return make_sanitizer(self.method, self.parameters)

    @contextmanager
    def open_run(self, release_id: str) -> Iterator[tuple[Transaction, Run]]:
        """Open a transaction, and return it with a run of this release file.

        A run of another file is refused: no step may use the settings of another release.
        """
        with self.open_store().transaction(release_id) as db:
            run = get_run(db, release_id)
            if (run.dataset, run.file_digest) != (self.dataset, self.file_digest):
                raise Refused(
                    f"{release_id} was begun by another release file.",
                    remedy="Run the release again with the file as it is now.",
                )
            yield db, run

    @property
    def label(self) -> Column | None:
        return next((column for column in self.columns if column.role == "label"), None)
