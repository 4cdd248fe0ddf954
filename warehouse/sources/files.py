"""The files of a source: one file, a folder, a pattern with wildcards, or objects in a bucket."""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from ppdm_core.model.errors import BadInput, PpdmError
from warehouse.columns import Source
from warehouse.home import create_private, translate_disk_errors
from warehouse.sources import bucket_files
from warehouse.sources.checks import check_file

PARTS = "parts"  # name of the folder that several files are copied to
COPY_BYTES = 2**20  # at a time


@dataclass(frozen=True)
class FoundFile:
    """A file of a source."""

    path: str  # or URL
    name: str  # relative to the folder of the source; unique, and the files are sorted by it


def list_files(source: Source, endings: tuple[str, ...]) -> list[FoundFile]:
    """Return the files of a source in the order of their names.

    Of folders and patterns, names that start with "." or "_" do not count: tools put their notes
    into such files. In a folder, only files with the endings of the kind count.
    """
    path = source.path
    if bucket_files.is_url(path):
        found = [FoundFile(*each) for each in bucket_files.list_objects(source, endings)]
    elif os.path.isdir(path):
        paths = glob.glob(os.path.join(glob.escape(path), "**"), recursive=True)
        found = _select(path, [each for each in paths if each.lower().endswith(endings)])
    elif glob.has_magic(path) and not os.path.exists(path):
        found = _select(_fixed_folder(path), glob.glob(path, recursive=True))
    else:
        check_file(source)
        return [FoundFile(path, source.name)]
    if not found:
        raise BadInput(
            f"No file is found for the source {source.name}.",
            file=path,
            remedy=f"Check 'path' in [source]; files of this kind end in {', '.join(endings)}.",
        )
    if any("=" in part for each in found for part in each.name.split("/")[:-1]):
        raise BadInput(
            f"The files of {source.name} are in folders named as 'column=value'.",
            file=path,
            remedy="Write that column into the files, or name the files of one such folder.",
        )
    return found


def _fixed_folder(pattern: str) -> str:
    """Return the folder before the first wildcard."""
    parts = pattern.split(os.sep)
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return os.sep.join(parts[:first]) or os.sep


def _select(folder: str, paths: list[str]) -> list[FoundFile]:
    """Return what counts among these paths below a folder, sorted by name."""
    names = {os.path.relpath(path, folder): path for path in paths if os.path.isfile(path)}
    return [
        FoundFile(path, name)
        for name, path in sorted(names.items())
        if not any(part.startswith((".", "_")) for part in name.split(os.sep))
    ]


def _read(source: Source, file: FoundFile) -> Iterator[bytes]:
    """Yield the bytes of a file."""
    if bucket_files.is_url(file.path):
        yield from bucket_files.read_object(source, file.path)
        return
    check_file(replace(source, path=file.path))
    with open(file.path, "rb") as stream:
        while piece := stream.read(COPY_BYTES):
            yield piece


def _copy(source: Source, file: FoundFile, to: BinaryIO | None = None) -> str:
    """Return the SHA-256 digest of a file; write its bytes to ``to``."""
    digest = hashlib.sha256()
    for piece in _read(source, file):
        digest.update(piece)
        if to is not None:
            to.write(piece)
    return digest.hexdigest()


def _join_digests(digests: list[str]) -> str:
    """Return one digest for the contents of all files in their order; names do not count."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def digest_files(source: Source, endings: tuple[str, ...]) -> str:
    """Return the SHA-256 digest of a file, or one of the digests of several."""
    return _join_digests([_copy(source, file) for file in list_files(source, endings)])


def copy_files(source: Source, endings: tuple[str, ...], folder: Path) -> tuple[Source, str]:
    """Copy the files to a folder; return the copy and the digest of the copied bytes."""
    files = list_files(source, endings)
    root, digests = folder if _is_one(source, files) else folder / PARTS, []
    with translate_disk_errors(folder):
        for file in files:
            copy = root / file.name
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with create_private(copy) as to:
                digests.append(_copy(source, file, to))
    return find_copied_files(source, folder), _join_digests(digests)


def _is_one(source: Source, files: list[FoundFile]) -> bool:
    """Return whether a source names one file, not a folder or a pattern."""
    return [file.path for file in files] == [source.path]


def find_copied_files(source: Source, folder: Path) -> Source:
    """Return the copy that ``copy_files`` wrote to a folder."""
    parts = folder / PARTS
    return replace(source, path=str(parts if parts.is_dir() else folder / source.name))


@contextmanager
def open_files(
    source: Source, endings: tuple[str, ...], *, only_first: bool = False
) -> Iterator[list[Source]]:
    """Open the files of a source, each as a source of its own with a local path.

    Objects in a bucket are fetched to a private temporary folder, which is removed at the end;
    errors name them by their URL.
    """
    files = list_files(source, endings)
    if only_first:
        del files[1:]
    if not bucket_files.is_url(source.path):
        for file in files:
            check_file(replace(source, path=file.path))
        yield [replace(source, path=file.path) for file in files]
        return
    with tempfile.TemporaryDirectory(prefix="ppdm-") as folder:
        local = {str(Path(folder, file.name)): file for file in files}
        with translate_disk_errors(Path(folder)):
            for path, file in local.items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                with create_private(Path(path)) as to:
                    _copy(source, file, to)
        try:
            yield [replace(source, path=path) for path in local]
        except PpdmError as error:
            if error.file in local:
                error.file = local[error.file].path
            raise
