"""`ppdm examples`: write the example release files and their tables into a folder."""

from __future__ import annotations

from pathlib import Path

from ppdm.cli.replies.others import ExamplesReply
from ppdm.cli.result import CommandResult
from ppdm.example_tables import TABLES
from ppdm_core.model.errors import BadInput


def write_examples(folder: Path) -> CommandResult:
    """Write all missing files; raise BadInput if a file of another content is there."""
    from warehouse.home import translate_disk_errors

    contents = {path.name: path.read_bytes() for path in list_release_files()}
    contents |= {name: make() for name, make in TABLES.items()}
    missing = [name for name in contents if not (folder / name).exists()]
    for name in sorted(set(contents) - set(missing)):
        if (folder / name).is_dir() or (folder / name).read_bytes() != contents[name]:
            raise BadInput(
                f"{name} is already in {folder}, with other content.",
                file=str(folder / name),
                remedy="Name another folder, or remove the file.",
            )
    with translate_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in missing:
            (folder / name).write_bytes(contents[name])
    count = f"{len(missing)} of {len(contents)} files written" if missing else "Nothing was missing"
    first = next(name for name in contents if name not in TABLES)
    text = f"{count} in {folder}. Try: ppdm check {folder / first}"
    return CommandResult(text, ExamplesReply(folder=str(folder), written=missing).as_payload())


def list_release_files() -> list[Path]:
    """Return the example release files."""
    return sorted(find_examples().glob("*.toml"))


def find_examples() -> Path:
    """Return the folder of the examples: next to the packages in a checkout, else inside ppdm."""
    package = Path(__file__).resolve().parents[1]
    in_package = package / "examples"
    return in_package if in_package.is_dir() else package.parent / "examples"
