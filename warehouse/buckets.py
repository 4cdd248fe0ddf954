"""Buckets of S3-compatible object stores: how they are opened, and what their errors mean."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError
from warehouse.credentials import LOCAL_HOSTS, SECRET_PARAMETERS, check_url, read_credentials

if TYPE_CHECKING:
    from obstore.store import S3Store

SCHEME = "s3"
KEYS = ("access_key_id", "secret_access_key", "session_token")
CLIENT: dict[str, Any] = {"connect_timeout": "10s", "timeout": "300s"}
MAX_RETRIES, RETRY_SECONDS = 3, 30
LIST_SECONDS = 10.0
REFUSALS = (401, 403)  # of HTTP
# Codes of stores without space: of Ceph with status 403, of MinIO with 507 and 400.
FULL = ("QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded")
NAME = re.compile(r"[A-Za-z0-9._-]+")  # of a bucket
DEFAULT_REGION = "us-east-1"


def is_url(path: str) -> bool:
    """Return whether a path is the URL of a bucket."""
    return path.startswith(f"{SCHEME}://")


def split_url(url: str) -> tuple[str, str]:
    """Return the bucket of a URL, and what follows it. Wildcards are no query."""
    bucket, _, key = url.removeprefix(f"{SCHEME}://").partition("/")
    return bucket, key


def check_bucket_options(url: str, options: Mapping[str, str], key: str) -> None:
    """Check the URL of a bucket and the options for it; ``key`` is that of the URL."""
    bucket, name = split_url(url)
    parameters = {each for each, _ in parse_qsl(name.partition("?")[2], keep_blank_values=True)}
    if not NAME.fullmatch(bucket) or parameters & SECRET_PARAMETERS:
        raise BadInput(
            f"The '{key}' key is not of the form s3://bucket/name.",
            remedy="Write the bucket and the name alone; keys belong into the environment.",
        )
    if "endpoint" in options:
        check_url(options["endpoint"], ("https", "http"), "endpoint")
        parts = urlsplit(options["endpoint"])
        if parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS:
            raise BadInput(
                "The 'endpoint' key begins with http://: rows would travel unencrypted.",
                remedy="Use https://.",
            )


def open_bucket(url: str, options: Mapping[str, str]) -> S3Store:
    """Return the bucket of a URL, with keys from the environment or the credentials file."""
    return _make_store(url, options, MAX_RETRIES, **read_keys(url, options))


def read_keys(url: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of a bucket from the environment or the credentials file."""
    keys = {name: os.environ.get(f"AWS_{name.upper()}", "") for name in KEYS}
    if "credentials" in options:
        keys = {**dict.fromkeys(KEYS, ""), **read_credentials(options["credentials"], KEYS)}
    if not keys["access_key_id"] or not keys["secret_access_key"]:
        raise BadInput(
            f"No keys are given for the bucket {split_url(url)[0]}.",
            file=url,
            remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file in "
            "'credentials'.",
        )
    return {name: value for name, value in keys.items() if value}


def is_listed_publicly(url: str, options: Mapping[str, str], prefix: str) -> bool | None:
    """Return whether any person can list the bucket or a prefix of it; None if that is not known.

    Only a server that refuses a listing without keys is known not to list.
    """
    answers = {_list_without_keys(url, options, each) for each in ("", prefix)}
    return None if None in answers and True not in answers else True in answers


def _list_without_keys(url: str, options: Mapping[str, str], prefix: str) -> bool | None:
    """Return whether a prefix is listed to a person without keys; None if that is not known.

    The library of buckets reports a refusal and a lost connection as the same error.
    """
    import urllib.error
    import urllib.request

    query = urlencode({"list-type": "2", "max-keys": "1", "prefix": prefix})
    address = f"{find_address(url, options)}?{query}"
    try:
        with urllib.request.urlopen(address, timeout=LIST_SECONDS):
            return True
    except urllib.error.HTTPError as error:
        return False if error.code in REFUSALS else None
    except (OSError, ValueError):
        return None


def find_address(url: str, options: Mapping[str, str]) -> str:
    """Return the address of a bucket on its server."""
    endpoint = _find_endpoint(options) or f"https://s3.{find_region(options)}.amazonaws.com"
    return f"{endpoint.rstrip('/')}/{quote(split_url(url)[0])}"


def _find_endpoint(options: Mapping[str, str]) -> str:
    return options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")


def find_region(options: Mapping[str, str]) -> str:
    return options.get("region") or os.environ.get("AWS_REGION") or DEFAULT_REGION


def _make_store(url: str, options: Mapping[str, str], retries: int, **keys: Any) -> S3Store:
    from obstore.store import S3Store

    endpoint = _find_endpoint(options)
    client: Any = {**CLIENT, "allow_http": endpoint.startswith("http://")}
    if endpoint:
        keys["endpoint"] = endpoint
    return S3Store(
        split_url(url)[0],
        region=find_region(options),
        client_options=client,
        retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        **keys,
    )


@contextmanager
def translate_bucket_errors(store: S3Store, url: str, *, is_begun: bool = False) -> Iterator[None]:
    """Turn errors of a bucket into one sentence; the library's own quote requests and answers.

    ``is_begun`` says that the server has answered before: now it is trouble, not bad input.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:
        raise _describe_error(store, url, error, is_begun) from None


def _describe_error(store: S3Store, url: str, error: Exception, is_begun: bool) -> PpdmError:
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    bucket = split_url(url)[0]
    if any(f"<Code>{code}</Code>" in str(error) for code in FULL):
        return MachineTrouble(
            f"The bucket {bucket} has no space left.",
            file=url,
            remedy="Free some, and try again; what is complete is kept.",
        )
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return BadInput(
            f"The bucket {bucket} refuses access with the given keys.",
            file=url,
            remedy="Check the keys, and the rights to list, read or write there.",
        )
    if isinstance(error, FileNotFoundError):
        return BadInput(
            f"There is no such object or bucket: {bucket}.",
            file=url,
            remedy="Check the bucket and the name in the URL.",
        )
    if is_begun:
        return MachineTrouble(
            f"The bucket {bucket} does not answer any more, or has no space left.",
            file=url,
            remedy="Try again; what is complete is kept.",
        )
    return _probe(store, url)


def _probe(store: S3Store, url: str) -> PpdmError:
    """Return what a failed listing means: the library reports all its causes as one error."""
    import obstore
    from obstore.exceptions import BaseError

    bucket = split_url(url)[0]
    try:
        obstore.head(store, ".ppdm-probe")
    except (BaseError, OSError) as error:
        if type(error).__name__ != "GenericError":
            return _describe_error(store, url, error, False)
    return BadInput(
        f"The server of the bucket {bucket} cannot be reached, or does not list it.",
        file=url,
        remedy="Check 'endpoint', the bucket, and the network.",
    )
