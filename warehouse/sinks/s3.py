"""A prefix of a bucket: the files of each version, and last its manifest.

The files are written below a name that cannot be guessed, which is in the manifest. So recipients
without the manifest cannot read them, if the bucket lists nothing to the public.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ppdm_core.model.errors import BadInput, MachineTrouble
from ppdm_core.model.manifest import NAME
from ppdm_core.model.withdrawal import NOTICE_NAME
from warehouse.buckets import (
    SCHEME,
    check_bucket_options,
    is_listed_publicly,
    open_bucket,
    split_url,
    translate_bucket_errors,
)
from warehouse.sinks._sink import Delivery, ServerSink
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
        bucket = split_url(options["url"])[0]
        with translate_bucket_errors(store, options["url"]):
            found = [each["path"] for page in obstore.list(store, f"{folder}/") for each in page]
            made = obstore.put(store, f"{_name_data(delivery)}/{PROBE}", b"")
            obstore.delete(store, f"{_name_data(delivery)}/{PROBE}")
        if found:
            raise BadInput(
                f"The prefix {folder} exists already in the bucket {bucket}.",
                remedy="Name another prefix in 'url'.",
            )
        if made["version"] is not None and VERSIONED not in waived:
            raise BadInput(
                f"The bucket {bucket} keeps old versions of objects: a withdrawn release could "
                "still be read there.",
                remedy=f'Use a bucket without versioning, or accept it: waive = "{VERSIONED}".',
            )
        if LISTED not in waived:
            _check_not_listed(delivery)

    def describe_place(self, delivery: Delivery) -> dict[str, Any]:
        bucket = split_url(delivery.options["url"])[0]
        return {"kind": self.name, "url": f"{SCHEME}://{bucket}/{_name_data(delivery)}/"}

    def stage(self, delivery: Delivery, folder: Path) -> None:
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            for path in sorted(folder.iterdir()):
                _create(store, f"{_name_data(delivery)}/{path.name}", path.read_bytes())

    def read_staged(self, delivery: Delivery) -> pa.Table:
        import obstore
        import pyarrow.parquet as pq

        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            found = obstore.get(store, f"{_name_data(delivery)}/data.parquet").bytes()
        return pq.read_table(io.BytesIO(bytes(found)))

    def discard(self, delivery: Delivery) -> None:
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            _delete_data(store, delivery)

    def expose(self, delivery: Delivery, manifest: bytes) -> None:
        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            _create(store, f"{_name_folder(delivery)}/{NAME}", manifest)

    def remove(self, delivery: Delivery, notice: bytes) -> None:
        import obstore

        store = open_bucket(delivery.options["url"], delivery.options)
        with translate_bucket_errors(store, delivery.options["url"], is_begun=True):
            obstore.put(store, f"{_name_folder(delivery)}/{NOTICE_NAME}", notice)
            obstore.delete(store, f"{_name_folder(delivery)}/{NAME}")
            _delete_data(store, delivery)


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


def _create(store: S3Store, name: str, content: bytes) -> None:
    """Create an object; one that an earlier attempt wrote must be the same."""
    import obstore
    from obstore.exceptions import AlreadyExistsError

    try:
        obstore.put(store, name, content, mode="create", use_multipart=False)
    except AlreadyExistsError:
        if bytes(obstore.get(store, name).bytes()) != content:
            raise MachineTrouble(
                f"The object {name.rpartition('/')[2]} of this version exists with other content.",
                remedy="Find out who wrote it, remove it, and try again.",
            ) from None
