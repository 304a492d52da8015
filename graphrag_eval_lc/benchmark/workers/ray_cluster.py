"""Reaching a Ray cluster: an existing one, or one that is started here and ends with the run.

Imported only where the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.retrying import masked_error_text

_HINT = "Install it: pip install 'graphrag-eval-lc[ray]'."
# What a folder with an agent holds in addition to its code; it is not sent to the cluster.
_NOT_SENT = [".git", ".venv", "venv", "__pycache__", "node_modules", "runs", "*.jsonl", "*.parquet", "report.html"]
_ANSWER_SEC = 10.0


class RayCluster:
    """The cluster of a run. A cluster that this process is connected to already goes before all others.

    Args:
        workers: How many workers there are; None: one for each processor of the cluster.
        address: The cluster; None: that of RAY_ADDRESS, else one that is started here.

    Attributes:
        ray: Ray's module.
        is_to_be_joined: Whether this process is to connect to an existing cluster.
        folder: A folder of code that goes to such a cluster; None: none does.

    Raises:
        OptionError: Ray is not installed.
    """

    def __init__(self, *, workers: int | None = None, address: str | None = None) -> None:
        try:
            self.ray: Any = importlib.import_module("ray")
        except ImportError as problem:
            raise OptionError("the engine ray needs the package ray", key="engine", hint=_HINT) from problem
        self.folder: str | None = None
        self._workers = workers
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self.is_to_be_joined = self._address is not None and not self.ray.is_initialized()
        self._is_ours = False

    def open(self) -> int:
        """Connect to the cluster or start it, and return how many workers there are to be.

        Raises:
            OptionError: It cannot be reached or started.
        """
        if not self.ray.is_initialized():
            with _signal_handlers_kept():
                try:
                    self._connect()
                except Exception as problem:
                    raise self._not_connected(problem) from problem
            self._is_ours = True
        if self._workers is not None:
            return self._workers
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._is_ours:
            self.ray.shutdown()

    def _connect(self) -> None:
        if self._address is not None:
            _require_answer(self._address)
            sent = {} if self.folder is None else {"working_dir": self.folder, "excludes": _NOT_SENT}
            self.ray.init(address=self._address, logging_level="error", runtime_env=sent)
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # our users did not agree to it
        processors = self._workers or os.cpu_count() or 1
        self.ray.init(address="local", num_cpus=processors, logging_level="error", include_dashboard=False)

    def _not_connected(self, problem: Exception) -> OptionError:
        if self.folder is not None and type(problem).__name__ == "RuntimeEnvSetupError":
            reason = masked_error_text(problem.__cause__ or problem).splitlines()[-1].partition(". ")[0]
            hint = f"Name what workers do not need, such as data, in {Path(self.folder, '.rayignore')}."
            return OptionError(f"the agent's folder cannot be sent to the cluster: {reason}", key="agent", hint=hint)
        where = "started here" if self._address is None else f"reached at {self._address}"
        return OptionError(
            f"no Ray cluster can be {where}: {masked_error_text(problem).splitlines()[0]}",
            key="engine" if self._address is None else "ray_address",
            hint="Look at it with: ray status. A token goes into RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token.",
        )


def _require_answer(address: str) -> None:
    """Let nobody wait for an address where nothing answers: Ray would try again for a quarter of an hour.

    Raises:
        ConnectionError: No connection can be made there.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "://" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SEC).close()
    except OSError as problem:
        raise ConnectionError(f"nothing answers at {address} ({problem.strerror or problem})") from problem


def places_of_code() -> tuple[str, list[str]]:
    """Return the current folder, and where modules are found."""
    return str(Path.cwd()), [str(Path(path).absolute()) for path in sys.path if path]


def use_code_in(folder: str | None, paths: Iterable[str]) -> None:
    """Work in the driver's folder, and find modules where it finds them, on a machine that has these places."""
    sys.path.extend(path for path in paths if path not in sys.path and Path(path).exists())
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Put back the handler of SIGTERM, which Ray takes for itself in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


async def answer_of(reference: Any) -> Any:
    """Wait for what a call of an actor or task returns.

    Whoever is cancelled waits no longer, but the call continues: Ray's client takes a cancelled one for an error.
    """
    answer = asyncio.wrap_future(reference.future())
    answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # else asyncio may print it
    return await asyncio.shield(answer)


def why_lost(problem: BaseException) -> str:
    """Say in a few words why a worker is gone."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if "died because its node has died" in str(problem):
        return "its machine is gone"
    if type(problem).__name__ == "ActorDiedError" and "creation task" in str(problem):
        return lines[-1]
    return "its process is gone"
