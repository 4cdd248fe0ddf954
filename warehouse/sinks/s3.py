"""A prefix of a bucket: the files of each version, and last its manifest.

The files are written below a name that cannot be guessed, which is in the manifest. So recipients
without the manifest cannot read them, if the bucket lists nothing to the public.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import NAME
from ppdm_core.model.withdrawal import NOTICE_NAME
from warehouse.bucket_objects import (
    create_object,
    digest_file,
    digest_object,
    read_if_there,
    upload_file,
)
from warehouse.bucket_versions import keeps_versions
from warehouse.buckets import (
    SCHEME,
    check_bucket_options,
    is_listed_publicly,
    open_bucket,
    split_url,
    translate_bucket_errors,
)
from warehouse.checkpoints import checkpoint
from warehouse.sinks._sink import Delivery, ServerSink
from warehouse.sinks.parquet import DATA, read_tables
from warehouse.sources import Option
from warehouse.sources._reader import BUCKET_OPTIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import S3Store

VERSIONED, LISTED = "versioned", "listed"
PROBE = "probe"


class S3(ServerSink):
    """Prefixes of S3-compatible buckets."""

    name = "s3"
    options: ClassVar[Mapping[str, Option]] = {
        **BUCKET_OPTIONS,
        "url": Option("s3://bucket/prefix of the released files.", True),
        "waive": Option(
            f"'{VERSIONED}', '{LISTED}' or both, with a comma: write to a bucket that keeps "
            "deleted objects, or that any person can list."
        ),
    }

    def check_options(self, options: Mapping[str, str]) -> None:
        check_bucket_options(options["url"], options, "url")
        if not _list_waived(options) <= {VERSIONED, LISTED}:
            raise BadInput(
                f"The 'waive' key of the s3 sink must be '{VERSIONED}', '{LISTED}' or both.",
                remedy="Correct 'waive'.",
            )

    def check_target(self, delivery: Delivery) -> None:
        import obstore

        options, waived = delivery.options, _list_waived(delivery.options)
        store, folder = open_bucket(options["url"], options), _name_folder(delivery)
        with translate_bucket_errors(store, options["url"]):
            found = [each["path"] for page in obstore.list(store, f"{folder}/") for each in page]
            made = obstore.put(store, f"{_name_data(delivery)}/{PROBE}", b"")
            obstore.delete(store, f"{_name_data(delivery)}/{PROBE}")
        if found:
            raise _exists_error(delivery)
        if VERSIONED not in waived:
            _check_no_versions(delivery, has_version=made["version"] is not None)
        if LISTED not in waived:
            _check_not_listed(delivery)

    def describe_place(self, delivery: Delivery) -> dict[str, Any]:
        bucket = split_url(delivery.options["url"])[0]
        return {"kind": self.name, "url": f"{SCHEME}://{bucket}/{_name_data(delivery)}/"}

    def stage(self, delivery: Delivery, folder: Path) -> None:
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            _delete_data(store, delivery)  # of a killed run, whose files may have other bytes
            for path in sorted(folder.iterdir()):
                upload_file(store, f"{_name_data(delivery)}/{path.name}", path)
                checkpoint("object staged")

    def read_staged(self, delivery: Delivery, folder: Path) -> Iterator[pa.Table]:
        """Compare the bytes of every object; then its rows are those of the file here."""
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            for path in sorted(folder.iterdir()):
                if digest_object(store, f"{_name_data(delivery)}/{path.name}") != digest_file(path):
                    raise Refused(
                        f"The s3 sink does not hold the file {path.name} as it is.",
                        remedy="Nothing was published; report this, a correct run does not do it.",
                    )
        return read_tables(folder / DATA)

    def discard(self, delivery: Delivery) -> None:
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            _delete_data(store, delivery)

    def expose(self, delivery: Delivery, manifest: bytes) -> None:
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            if self._is_taken(store, delivery):
                raise _exists_error(delivery)
            create_object(store, f"{_name_folder(delivery)}/{NAME}", manifest)

    def remove(self, delivery: Delivery, notice: bytes) -> None:
        import obstore

        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            if not self._is_taken(store, delivery, notice):
                create_object(store, f"{_name_folder(delivery)}/{NOTICE_NAME}", notice)
                checkpoint("notice of a sink written")
                obstore.delete(store, f"{_name_folder(delivery)}/{NAME}")
                checkpoint("manifest of a sink removed")
            _delete_data(store, delivery)

    def _is_taken(self, store: S3Store, delivery: Delivery, notice: bytes | None = None) -> bool:
        """Return whether there is a notice, or a manifest of something else.

        Homes may have datasets of the same name; the manifest names the place of the files.
        """
        manifest = read_if_there(store, f"{_name_folder(delivery)}/{NAME}")
        place = self.describe_place(delivery)
        is_other = manifest is not None and place not in _list_places(manifest)
        return is_other or read_if_there(store, f"{_name_folder(delivery)}/{NOTICE_NAME}") not in (
            None,
            notice,
        )


def _list_places(manifest: bytes) -> list[Any]:
    """Return what a manifest says of its sinks."""
    try:
        found = json.loads(manifest)["sinks"]
    except (ValueError, KeyError, TypeError):
        return []
    return found if isinstance(found, list) else []


def _exists_error(delivery: Delivery) -> BadInput:
    bucket = split_url(delivery.options["url"])[0]
    return BadInput(
        f"The prefix {_name_folder(delivery)} exists already in the bucket {bucket}.",
        remedy="Name another prefix in 'url'.",
    )


def _check_no_versions(delivery: Delivery, *, has_version: bool) -> None:
    """Raise BadInput unless the server says that the bucket never kept old versions."""
    url = delivery.options["url"]
    bucket = split_url(url)[0]
    is_kept = keeps_versions(url, delivery.options)
    if has_version or is_kept:
        raise BadInput(
            f"The bucket {bucket} keeps old versions of objects: a withdrawn release could "
            "still be read there.",
            remedy=f'Use a bucket without versioning, or accept it: waive = "{VERSIONED}".',
        )
    if is_kept is None:
        raise BadInput(
            f"The server does not say whether the bucket {bucket} keeps old versions of objects.",
            remedy="Give these keys the right to ask (s3:GetBucketVersioning), or accept it: "
            f'waive = "{VERSIONED}".',
        )


def _check_not_listed(delivery: Delivery) -> None:
    """Raise BadInput unless the server refuses to list the bucket to a person without keys."""
    url = delivery.options["url"]
    bucket = split_url(url)[0]
    is_listed = is_listed_publicly(url, delivery.options, f"{_name_folder(delivery)}/")
    if is_listed:
        raise BadInput(
            f"Any person can list the bucket {bucket}.",
            remedy=f'Close it, or accept it: waive = "{LISTED}".',
        )
    if is_listed is None:
        raise BadInput(
            f"The server does not say whether any person can list the bucket {bucket}: it neither "
            "accepts nor refuses a listing without keys.",
            remedy=f'Try again, ask its administrator, or accept it: waive = "{LISTED}".',
        )


def _list_waived(options: Mapping[str, str]) -> set[str]:
    return {word.strip() for word in options.get("waive", "").split(",")} - {""}


def _name_folder(delivery: Delivery) -> str:
    """Return the name below which the manifest or the notice of a version is."""
    prefix = split_url(delivery.options["url"])[1].strip("/")
    return "/".join(filter(None, (prefix, delivery.dataset, delivery.version)))


def _name_data(delivery: Delivery) -> str:
    """Return the name below which the files of a version are."""
    return f"{_name_folder(delivery)}-{delivery.token}"


def _delete_data(store: S3Store, delivery: Delivery) -> None:
    import obstore

    for page in obstore.list(store, f"{_name_data(delivery)}/"):
        obstore.delete(store, [each["path"] for each in page])
