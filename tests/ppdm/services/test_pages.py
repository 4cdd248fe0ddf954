"""The pages that `ppdm up` names, with a small substitute for the MLflow server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ppdm.cli.up import choose_first_pages
from ppdm.services.pages import list_pages

EXPERIMENTS = [
    {"experiment_id": "0", "name": "Default"},
    {"experiment_id": "7", "name": "wine"},
]


class Server(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.dumps({"experiments": EXPERIMENTS}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_list_pages_dataset_has_its_list_with_columns(address: str) -> None:
    pages = list_pages({"prefect": "http://p", "mlflow": address})
    assert list(pages) == ["Prefect", "MLflow", "MLflow, wine"]
    assert pages["Prefect"] == "http://p/runs"
    assert pages["MLflow"].endswith("/#/experiments?workflowType=machine_learning")
    assert "/#/experiments/7/runs?" in pages["MLflow, wine"]
    assert pages["MLflow, wine"].endswith("viewStateShareKey=ppdm")
    assert choose_first_pages(pages) == [pages["Prefect"], pages["MLflow, wine"]]


def test_list_pages_server_fails_general_pages_only() -> None:
    pages = list_pages({"prefect": "http://p", "mlflow": "http://127.0.0.1:1"})
    assert list(pages) == ["Prefect", "MLflow"]
    assert choose_first_pages(pages) == list(pages.values())
