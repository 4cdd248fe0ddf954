"""MLflow's pages as they are served: no assistant, no other hosts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tasks.notify.mlflow_pages import RestrictedPages

PAGE = [b"<html><head></he", b"ad><body>runs</body></html>"]


async def serve_page(scope: Any, receive: Any, send: Any) -> None:
    """An application that sends a page in two parts."""
    length = str(sum(map(len, PAGE))).encode()
    headers = [(b"content-type", b"text/html"), (b"Content-Length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": PAGE[0], "more_body": True})
    await send({"type": "http.response.body", "body": PAGE[1]})


def ask(path: str) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(RestrictedPages(serve_page)({"type": "http", "path": path}, None, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], {k.lower(): v for k, v in sent[0]["headers"]}, body


@pytest.mark.parametrize("path", ["/ajax-api/3.0/mlflow/assistant/message", "/assistant"])
def test_pages_assistant_not_found(path: str) -> None:
    assert ask(path)[::2] == (404, b"")


def test_pages_first_page_closes_the_assistant() -> None:
    status, headers, body = ask("/")
    assert status == 200 and int(headers[b"content-length"]) == len(body)
    assert b"assistant.fab.autoOpenedOnFirstLoad" in body.partition(b"</head>")[0]
    assert body.endswith(b"<body>runs</body></html>")


def test_pages_other_page_unchanged_with_policy() -> None:
    _, headers, body = ask("/static/js/main.js")
    assert body == b"".join(PAGE)
    assert headers[b"content-security-policy"].startswith(b"default-src 'self'")
