"""The server of moto, which also refuses requests without keys: alone it fails with status 500.

Objects of buckets in the folder that is its third argument (a file for each) can be read without
keys, as with a policy that lets all read. moto itself checks no policy for such requests.

While the file that is its second argument exists, the store is full: it refuses to write objects
with the status and the code in that file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import run_simple

Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]
DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


def refuse_anonymous(application: Application, public: Path) -> Application:
    """Return the application behind a check that a request is signed, or reads a public object."""

    def answer(environment: Environment, start_response: Any) -> Iterable[bytes]:
        is_signed = "X-Amz-Signature=" in environment.get("QUERY_STRING", "")
        if is_signed or "HTTP_AUTHORIZATION" in environment:
            return application(environment, start_response)
        bucket, _, key = environment["PATH_INFO"].strip("/").partition("/")
        if environment["REQUEST_METHOD"] == "GET" and key and (public / bucket).exists():
            found = read_object(bucket, key)
            start_response("404 Not Found" if found is None else "200 OK", [])
            return [found or b""]
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [DENIED]

    return answer


def read_object(bucket: str, key: str) -> bytes | None:
    """Return the content of an object of moto."""
    found = s3_backends["123456789012"]["aws"].get_object(bucket, key)
    return None if found is None else bytes(found.value)


def refuse_when_full(application: Application, path: Path) -> Application:
    """Return the application behind a check that the store has space left."""

    def answer(environment: Environment, start_response: Any) -> Iterable[bytes]:
        if environment["REQUEST_METHOD"] != "PUT" or not path.exists():
            return application(environment, start_response)
        status, code = path.read_text().split()
        start_response(f"{status} Full", [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>No space</Message></Error>".encode()]

    return answer


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        refuse_when_full(
            refuse_anonymous(DomainDispatcherApplication(create_backend_app), Path(sys.argv[3])),
            Path(sys.argv[2]),
        ),
        threaded=True,
    )
