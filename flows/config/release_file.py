"""The release file: one TOML file describes one release.

``load`` reads it. The model is also the parameter of the flows, so that the Prefect UI shows it
as a form. All problems of a file are raised as one ``BadInput``.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from flows.config.column_patterns import expand_patterns
from flows.config.columns import ColumnSpec, DefaultsSpec, build_column, check_columns
from flows.config.engine_section import EngineSpec
from flows.config.expectations import ExpectationSpec, check_expectations
from flows.config.name_checks import check_limit_names, check_required
from flows.config.schedule_section import ScheduleSpec
from flows.config.sections import (
    AuditSpec,
    DatasetSpec,
    LedgerSpec,
    ReviewSpec,
    SanitizerSpec,
)
from flows.config.shared_policy import apply_shared_policy
from flows.config.sink_section import SinkSpec, check_sinks
from flows.config.source_section import SourceSpec
from flows.config.valid_parts import check_valid_parts
from ppdm_core.model.errors import BadInput, ErrorList, join_errors
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.verdict import Review
from ppdm_core.settings.errors import RELEASE_FILE, find_problems
from ppdm_core.settings.sections import AttackerSpec, LimitSpec, Section, build_limits
from ppdm_core.settings.toml_text import parse_toml
from warehouse.columns import Column, Source


class ReleaseFile(Section):
    """One release, as its steward declares it."""

    format: Literal[1] = Field(description="Version of this format.")
    dataset: DatasetSpec = Field(description="What is released, by whom, for whom.")
    source: SourceSpec = Field(description="Where the private table is.")
    columns: dict[str, ColumnSpec] = Field(
        min_length=1, description="Every column of the source, and derived ones."
    )
    defaults: DefaultsSpec = Field(
        default_factory=DefaultsSpec, description="For features that do not set these keys."
    )
    expectations: list[ExpectationSpec] = Field(
        default_factory=list,
        description="Further checks of the source; each is an entry [[expectations]].",
    )
    sanitizer: SanitizerSpec = Field(
        description="The method, and its parameters as further keys; see `ppdm methods NAME`."
    )
    attacker: AttackerSpec = Field(
        default_factory=AttackerSpec, description="What the attacker is assumed to know."
    )
    audit: AuditSpec = Field(description="Which attacks must have run.")
    limits: dict[str, LimitSpec] = Field(min_length=1, description="The limits that a steward set.")
    review: ReviewSpec = Field(
        default_factory=ReviewSpec,
        description="What a release in review needs to be published.",
    )
    ledger: LedgerSpec = Field(
        default_factory=LedgerSpec,
        description="Which audiences are counted together, over all releases.",
    )
    sinks: list[SinkSpec] = Field(
        default_factory=list,
        description="Further places and formats of the release; each is an entry [[sinks]].",
    )
    engine: EngineSpec = Field(
        default_factory=EngineSpec, description="Where the release is computed."
    )
    schedule: ScheduleSpec | None = Field(default=None, description="When it is repeated.")
    policy: str = Field(
        default="",
        description="Policy file whose limits and attacks hold too; this file may only be "
        "stricter.",
    )
    policy_digest: str = Field(
        default="", description="Digest of the policy file; filled in when it is read."
    )
    base: str = Field(
        default=".", description="Folder of the release file; filled in when it is read."
    )

    # Prefect validates the file again as the parameter of the flow; it is checked once a process.
    _is_consistent: bool = PrivateAttr(default=False)
    _is_checked: bool = PrivateAttr(default=False)  # by `build_checked_context`

    @model_validator(mode="before")
    @classmethod
    def _read_path(cls, given: Any) -> Any:
        """Read the file if a path is given: a deployment may name a file, which each run reads."""
        if isinstance(given, str):
            errors = ErrorList()
            given = _read_content(Path(given), errors)
            errors.raise_all()
        is_shared = isinstance(given, dict) and given.get("policy")
        return apply_shared_policy(given) if is_shared else given

    @model_validator(mode="after")
    def _check_consistency(self) -> ReleaseFile:
        if self._is_consistent:
            return self
        errors = ErrorList()
        with errors.collect():
            check_columns(self.columns, self.dataset.record_id)
        with errors.collect():
            check_expectations(self.expectations, self.columns)
        with errors.collect():
            check_limit_names(self.limits)
        with errors.collect():
            check_required(self.audit)
        with errors.collect():
            check_sinks(self.sinks)
        errors.raise_all()
        self._is_consistent = True
        return self

    @property
    def digest(self) -> str:
        """Identity of the requested release; folder, engine and schedule are not part of it."""
        content = self.model_dump(mode="json", exclude={"base", "engine", "schedule"})
        if not self.policy:
            del content["policy"], content["policy_digest"]
        if self.audit.tuning:
            del content["audit"]["tuning"]  # it is the default, and changes no release
        content["columns"] = list(content["columns"].items())  # their order is part of the release
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def build_columns(self) -> tuple[Column, ...]:
        """Return the columns with their defaults applied."""
        return tuple(build_column(name, spec, self.defaults) for name, spec in self.columns.items())

    def resolve(self, path: str) -> Path:
        """Return a path of the release file as an absolute path."""
        return Path(os.path.abspath(os.path.join(self.base, path)))

    def build_source(self) -> Source:
        """Return the source with absolute paths."""
        return self.source.build(self.base)

    def build_policy(self) -> Policy:
        """Return the policy that judges the release."""
        return Policy(
            required=tuple(self.audit.required),
            limits=build_limits(self.limits),
            attacker=Attacker(**self.attacker.model_dump()),
            shadow_draws=self.audit.shadow_draws,
            splits=self.audit.splits,
            effort=self.audit.effort,
            groups=tuple(self.audit.groups),
            time_limit=self.audit.time_limit,
            review=Review(**self.review.model_dump()),
            collusion_waiver=self.ledger.collusion_waiver,
        )

    def home(self) -> Path:
        """Return the folder of keys, warehouse and published releases."""
        given = os.environ.get("PPDM_HOME")
        return Path(given).absolute() if given else self.resolve(".ppdm")

    def sanitizer_parameters(self) -> dict[str, Any]:
        """Return a copy of the parameters of the method."""
        return copy.deepcopy(self.sanitizer.model_extra or {})


MODELS: dict[str, type[BaseModel]] = {
    "": ReleaseFile,
    "dataset": DatasetSpec,
    "source": SourceSpec,
    "columns": ColumnSpec,
    "defaults": DefaultsSpec,
    "expectations": ExpectationSpec,
    "attacker": AttackerSpec,
    "audit": AuditSpec,
    "limits": LimitSpec,
    "review": ReviewSpec,
    "ledger": LedgerSpec,
    "sinks": SinkSpec,
    "engine": EngineSpec,
    "schedule": ScheduleSpec,
}


def load(path: str | Path) -> ReleaseFile:
    """Read and check a release file."""
    path, errors = Path(path), ErrorList()
    with errors.collect():
        content = _read_content(path, errors)
        try:
            file = ReleaseFile.model_validate(content)
            if not errors.found:
                return file
        except ValidationError as error:
            errors.add(find_problems(error, MODELS))
        except BadInput as error:
            errors.add(error)
        check_valid_parts(content)
    raise join_errors(errors.found).in_file(str(path))


def _read_content(path: Path, errors: ErrorList) -> dict[str, Any]:
    content = read_toml(path)
    for key in ("base", "policy_digest"):
        if key in content:
            raise BadInput(f"Unknown key '{key}' in the release file.", remedy="Remove it.")
    folder = path.resolve().parent
    return {**expand_patterns(content, folder, errors), "base": str(folder)}


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a release file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"The {RELEASE_FILE} does not exist.", remedy="Check the path.") from None
    except OSError as error:
        raise BadInput(
            f"The {RELEASE_FILE} cannot be read ({type(error).__name__}).",
            remedy="Check the path and its permissions.",
        ) from None
    return parse_toml(content, RELEASE_FILE)
