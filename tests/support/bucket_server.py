"""The server of moto, which also refuses requests without keys: alone it fails with status 500."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]
DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


def refuse_anonymous(application: Application) -> Application:
    """Return the application behind a check that a request is signed."""

    def answer(environment: Environment, start_response: Any) -> Iterable[bytes]:
        is_signed = "X-Amz-Signature=" in environment.get("QUERY_STRING", "")
        if is_signed or "HTTP_AUTHORIZATION" in environment:
            return application(environment, start_response)
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [DENIED]

    return answer


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        refuse_anonymous(DomainDispatcherApplication(create_backend_app)),
        threaded=True,
    )
