"""Build the context of a release, which the tasks work with, from the release file."""

from __future__ import annotations

import hashlib

from flows.config.name_checks import check_names, read_registered_names
from flows.config.release_file import ReleaseFile
from ppdm_core.model.errors import ErrorList
from tasks.context import ReleaseContext
from tasks.settings_check import check_settings
from warehouse.sources import SOURCES


def build_context(file: ReleaseFile) -> ReleaseContext:
    """Return the context that a release file describes."""
    return ReleaseContext(
        folder=file.base,
        file_digest=compute_digest(file),
        home=str(file.home()),
        dataset=file.dataset.name,
        owner=file.dataset.owner,
        audience=file.dataset.audience,
        source=file.build_source(),
        columns=file.build_columns(),
        expectations=tuple(spec.build() for spec in file.expectations),
        may_tune=file.audit.tuning,
        method=file.sanitizer.method,
        parameters=file.sanitizer_parameters(),
        policy=file.build_policy(),
        sinks=tuple(each.build(file.base) for each in file.sinks),
        record_id=file.dataset.record_id,
        keep_raw=file.dataset.keep_raw,
        engine=file.engine.build(file.base),
        file=file.model_dump_json(),
    )


def compute_digest(file: ReleaseFile) -> str:
    """Return a digest of the release file, and of the basis and query files that it names."""
    parameters = file.sanitizer_parameters()
    parts = [parameters, *(each for each in parameters.values() if isinstance(each, dict))]
    names = [part["basis_file"] for part in parts if isinstance(part.get("basis_file"), str)]
    options = SOURCES[file.source.kind].options
    names += [text for key, text in file.source.options.items() if options[key].is_content]
    if not names:
        return file.digest
    paths = [file.resolve(name) for name in names]
    contents = [path.read_bytes() if path.is_file() else b"" for path in paths]
    return hashlib.sha256(b"".join([file.digest.encode(), *contents])).hexdigest()


def build_checked_context(file: ReleaseFile) -> ReleaseContext:
    """Return the context after all checks that need no data; raise BadInput if one fails.

    A file is checked once per process: by the command that reads it, or else by the flow.
    """
    context = build_context(file)
    if not file._is_checked:
        errors, known = ErrorList(), read_registered_names()
        with errors.collect():
            check_names(file, known)
        if file.sanitizer.method in known.methods:
            with errors.collect():
                check_settings(context)
        errors.raise_all()
        file._is_checked = True
    return context
