"""The release file in the words of the layers below."""

from __future__ import annotations

from flows.config import ReleaseFile
from tasks.plan import Plan


def plan_of(file: ReleaseFile) -> Plan:
    return Plan(
        folder=file.base,
        file_digest=file.digest,
        home=str(file.home()),
        dataset=file.dataset.name,
        owner=file.dataset.owner,
        audience=file.dataset.audience,
        source=file.source_ref(),
        columns=file.column_list(),
        method=file.sanitizer.method,
        parameters=file.sanitizer_parameters(),
        policy=file.policy(),
        sink=file.sink.kind,
        record_id=file.dataset.record_id,
        keep_raw=file.dataset.keep_raw,
    )
