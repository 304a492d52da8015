"""A real ``langgraph dev`` server on loopback."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_LONGEST_START_SEC = 90.0


@contextmanager
def serving(folder: Path, *, certificate: Path | None = None, key: Path | None = None) -> Iterator["Server"]:
    """Start a server for a folder's ``langgraph.json`` and stop it at the end.

    Args:
        folder: Also receives the server's log.
        certificate: A self-signed certificate for HTTPS.
        key: The certificate's key.
    """
    for module in ("langgraph_cli", "langgraph_api"):
        pytest.importorskip(module, reason="needs langgraph-cli[inmem], as `make test-full` installs it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(folder, port, certificate, key)
    try:
        server.wait_for_start()
        yield server
    finally:
        server.end()


class Server:
    """A server in its own process.

    Attributes:
        url: Its address.
    """

    def __init__(self, folder: Path, port: int, certificate: Path | None = None, key: Path | None = None) -> None:
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{port}"
        self._trusts = ssl.create_default_context(cafile=certificate) if certificate else None
        self._log = folder / "server.log"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("LANGSMITH_", "LANGCHAIN_"))}
        alone = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
        if certificate and key:
            command += ["--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=folder, env=kept | alone, stdout=output, stderr=output, start_new_session=True
            )

    def wait_for_start(self) -> None:
        deadline = time.monotonic() + _LONGEST_START_SEC
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/ok", timeout=5, context=self._trusts):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        pytest.fail(f"the server did not start:\n{self._log.read_text(encoding='utf-8')[-3000:]}")

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def end(self) -> None:
        """Terminate the server, and kill it if that takes too long."""
        if self._process.poll() is not None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
