"""Whether a bucket keeps old versions of objects, asked by a signed request.

The library of buckets has no such request. The signature is version 4 of AWS, which all stores with
the interface of S3 accept.
"""

from __future__ import annotations

import hashlib
import hmac
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import IO
from urllib.parse import urlsplit
from xml.etree import ElementTree

from warehouse.buckets import find_address, find_region, read_keys

QUERY = "versioning="
ANSWERS = ("VersioningConfiguration", "GetBucketVersioningResponse")  # of S3, of moto
STATUS = "Status"  # of a bucket that keeps versions, or did before they were suspended
SCHEME, SERVICE, REQUEST = "AWS4-HMAC-SHA256", "s3", "aws4_request"
NO_CONTENT = hashlib.sha256(b"").hexdigest()
SECONDS = 10.0


class KeepAddress(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the signature is for one server only."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        return None


def keeps_versions(url: str, options: Mapping[str, str]) -> bool | None:
    """Return whether a bucket keeps old versions, or did once; None if the server does not say."""
    address = find_address(url, options)
    headers = sign_request(address, read_keys(url, options), find_region(options))
    request = urllib.request.Request(f"{address}?{QUERY}", headers=headers)
    try:
        with urllib.request.build_opener(KeepAddress).open(request, timeout=SECONDS) as answer:
            found = ElementTree.fromstring(answer.read())
    except (OSError, ValueError, ElementTree.ParseError):  # HTTPError is an OSError
        return None
    names = [each.tag.rpartition("}")[2] for each in found]
    return STATUS in names if found.tag.rpartition("}")[2] in ANSWERS else None


def sign_request(
    address: str, keys: Mapping[str, str], region: str, now: datetime | None = None
) -> dict[str, str]:
    """Return the headers of a request for the versioning of a bucket, with their signature."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    parts = urlsplit(address)
    headers = {
        "host": parts.netloc,
        "x-amz-content-sha256": NO_CONTENT,
        "x-amz-date": moment,
    }
    if "session_token" in keys:
        headers["x-amz-security-token"] = keys["session_token"]
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}\n" for name in sorted(headers)]
    canonical = "\n".join(["GET", parts.path, QUERY, "".join(lines), names, NO_CONTENT])
    scope = f"{moment[:8]}/{region}/{SERVICE}/{REQUEST}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{keys['secret_access_key']}".encode()
    for word in (*scope.split("/"), "\n".join([SCHEME, moment, scope, digest])):
        key = hmac.new(key, word.encode(), "sha256").digest()
    credential = f"Credential={keys['access_key_id']}/{scope}"
    signature = f"{SCHEME} {credential},SignedHeaders={names},Signature={key.hex()}"
    return {**headers, "Authorization": signature}
