"""The manifest of a release: canonical JSON whose last field is the digest of the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ppdm_core.errors import BadInput, Refused

NAME = "manifest.json"


def canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def seal(body: Mapping[str, Any]) -> bytes:
    text = canonical_json(dict(body))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"digest":"{digest}"}}\n'.encode()


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path) -> dict[str, Any]:
    """The manifest of the release in this folder, if every byte is as it left the door."""
    folder = path.parent if path.name == NAME else path
    source = folder / NAME
    if not source.is_file():
        raise BadInput(
            f"There is no {NAME} in {folder}.",
            file=str(folder),
            remedy="Name the folder of one released version.",
        )
    manifest = read_manifest(source)
    expected = {NAME, *manifest["files"]}
    present = {entry.name for entry in folder.iterdir()}
    for name in sorted(expected | present):
        if name not in present:
            raise altered(folder / name, "is missing")
        if name not in expected:
            raise altered(folder / name, "is not part of the release")
        if name != NAME and file_digest(folder / name) != manifest["files"][name]["sha256"]:
            raise altered(folder / name, "was changed after the release")
    return manifest


def read_manifest(source: Path) -> dict[str, Any]:
    raw = source.read_bytes()
    try:
        body = json.loads(raw)
        body.pop("digest")
        files = body["files"]
        sound = isinstance(files, dict) and seal(body) == raw
    except (ValueError, KeyError, AttributeError, TypeError):
        sound = False
    if not sound:
        raise altered(source, "was changed after the release")
    manifest: dict[str, Any] = json.loads(raw)
    return manifest


def altered(path: Path, what: str) -> Refused:
    return Refused(
        f"{path.name} {what}.",
        file=str(path),
        remedy="Do not use this copy; ask the steward for a new one.",
    )
