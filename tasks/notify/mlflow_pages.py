"""MLflow's pages as `ppdm up` serves them: without its assistant, and without other hosts."""

from __future__ import annotations

from typing import Any

ASSISTANT = "assistant"  # a part of the paths of MLflow's assistant, which runs commands
# The browser sends nothing to other hosts, whatever the pages ask for.
ONLY_HERE = b"default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'"
HEAD_END = b"</head>"
# The assistant would open by itself at the first visit.
NO_ASSISTANT = (
    b"<style>[data-assistant-ui]{display:none!important}</style>"
    b'<script>localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1","true");'
    b'localStorage.setItem("mlflow.assistant.panelOpen_v1","false")</script>'
)


class RestrictedPages:
    """An ASGI application around that of MLflow."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request as ASGI asks for it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif ASSISTANT in scope["path"].split("/"):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            reply = Reply(send, is_first_page=scope["path"] == "/")
            await self.app(scope, receive, reply.send)


class Reply:
    """The reply to a request: with a policy for the browser, and a changed first page."""

    def __init__(self, send: Any, *, is_first_page: bool) -> None:
        self._send, self._is_first_page = send, is_first_page
        self._start: Any = None
        self._body = b""

    async def send(self, message: Any) -> None:
        """Send a part of the reply; the first page as a whole."""
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"content-security-policy", ONLY_HERE)]
            self._start = {**message, "headers": headers}
            if not self._is_first_page:
                await self._send(self._start)
        elif not self._is_first_page:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._send_first_page()

    async def _send_first_page(self) -> None:
        body = self._body.replace(HEAD_END, NO_ASSISTANT + HEAD_END, 1)
        kept = [(k, v) for k, v in self._start["headers"] if k.lower() != b"content-length"]
        length = (b"content-length", str(len(body)).encode())
        await self._send({**self._start, "headers": [*kept, length]})
        await self._send({"type": "http.response.body", "body": body})
