"""Releases in databases and buckets, as recipients read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import NAME, parse_manifest
from ppdm_core.model.withdrawal import NOTICE_NAME
from warehouse.buckets import is_url, open_bucket, split_url, translate_bucket_errors
from warehouse.postgresql import check_server_options, connect, fetch, translate_errors
from warehouse.row_digest import digest_row_blocks
from warehouse.sinks.postgresql import MANIFESTS, read_rows
from warehouse.sql import literal, quote_name

if TYPE_CHECKING:
    from obstore.store import S3Store


def read_document(url: str, table: str) -> bytes:
    """Return the manifest or the notice of a released table: "schema.table" of a database."""
    options = {"url": url}
    check_server_options(options)
    schema, _, name = table.partition(".")
    if not name:
        raise BadInput(
            "The released table is not named with its schema.",
            remedy="Add: --table SCHEMA.TABLE",
        )
    query = (
        f"select document from {quote_name(schema)}.{MANIFESTS} where table_name = {literal(name)}"
    )
    with connect(options) as cursor, translate_errors(options, "Reading the manifest"):
        found = fetch(cursor, query)
    if not found:
        raise BadInput(
            f"There is no manifest of {name} in the schema '{schema}'.",
            remedy="Check the name of the table.",
        )
    return str(found[0][0]).encode()


def digest_table(url: str, table: str) -> str:
    """Return the digest of the rows of a released table of a database."""
    schema, _, name = table.partition(".")
    return digest_row_blocks(read_rows({"url": url}, f"{quote_name(schema)}.{quote_name(name)}"))


def fetch_version(url: str, folder: Path) -> None:
    """Fetch the files of a version to an empty folder.

    ``url`` is where the manifest is; the files are where the manifest says.
    """
    store = open_bucket(url, {})
    place = split_url(url)[1].strip("/").removesuffix(f"/{NAME}")
    with translate_bucket_errors(store, url):
        name = NAME if _is_there(store, f"{place}/{NAME}") else NOTICE_NAME
        raw = _fetch(store, f"{place}/{name}", folder / name)
        if name == NOTICE_NAME:
            return
        manifest = parse_manifest(folder / NAME, raw)
        data = split_url(_find_place(manifest, url))[1]
        for each in manifest["files"]:
            if _is_there(store, f"{data}{each}"):
                _fetch(store, f"{data}{each}", folder / Path(each).name)


def _find_place(manifest: Mapping[str, Any], url: str) -> str:
    """Return the URL of the files of a version in the same bucket."""
    bucket = split_url(url)[0]
    for sink in manifest.get("sinks", []):
        place = str(sink.get("url", "")) if isinstance(sink, dict) else ""
        if is_url(place) and split_url(place)[0] == bucket:
            return place
    raise BadInput(
        "The manifest names no files in this bucket.", file=url, remedy="Ask the steward."
    )


def _is_there(store: S3Store, name: str) -> bool:
    import obstore

    try:
        obstore.head(store, name)
    except FileNotFoundError:
        return False
    return True


def _fetch(store: S3Store, name: str, path: Path) -> bytes:
    import obstore

    content = bytes(obstore.get(store, name).bytes())
    path.write_bytes(content)
    return content
