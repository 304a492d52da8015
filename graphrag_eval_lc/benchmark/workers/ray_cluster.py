"""Reaching a Ray cluster: one that is there, or one that is started here and ends with the run.

Imported only where the engine is Ray, which is an optional extra.
"""

import asyncio
import contextlib
import importlib
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.retrying import masked_error_text

_ADDRESS = "RAY_ADDRESS"
_HINT = "Install it: pip install 'graphrag-eval-lc[ray]'."
# What a folder with an agent holds beside its code; it is not sent to the cluster.
_NOT_SENT = [".git", ".venv", "venv", "__pycache__", "node_modules", "runs", "*.jsonl", "*.parquet", "report.html"]
# Of a cluster that is started here: it tells nobody of its use, and without a token Ray would write one into the home.
_OWN_CLUSTER = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
_ANSWER_SEC = 10.0
_TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def _ray() -> Any:
    """Return Ray's module.

    Raises:
        OptionError: It is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as problem:
        raise OptionError("the engine ray needs the package ray", key="engine", hint=_HINT) from problem


class RayCluster:
    """The cluster of a run. A cluster that this process is connected to already goes before all others.

    Args:
        workers: How many workers there are; None: one for each processor of the cluster.
        address: The cluster; None: that of RAY_ADDRESS, else one that is started here.

    Attributes:
        ray: Ray's module.
        is_to_be_joined: Whether this process is to connect to a cluster that is there.
        folder: A folder of code that goes to such a cluster; None: none does.

    Raises:
        OptionError: Ray is not installed.
    """

    def __init__(self, *, workers: int | None = None, address: str | None = None) -> None:
        self.ray = _ray()
        self.folder: str | None = None
        self._workers = workers
        self._address = address or os.environ.get(_ADDRESS) or None
        self.is_to_be_joined = self._address is not None and not self.ray.is_initialized()
        self._closing = contextlib.ExitStack()

    def open(self) -> int:
        """Connect to the cluster or start it, and return how many workers there are to be.

        Raises:
            OptionError: It cannot be reached or started.
        """
        if not self.ray.is_initialized():
            self._connect()
        if self._workers is not None:
            return self._workers
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._closing.close()

    def _connect(self) -> None:
        quiet = {"logging_level": "error", "include_dashboard": False}
        with _signal_handlers_kept():
            try:
                if self._address is not None:
                    _require_answer(self._address)
                    sent = {} if self.folder is None else {"working_dir": self.folder, "excludes": _NOT_SENT}
                    self.ray.init(address=self._address, logging_level="error", runtime_env=sent)
                else:
                    self._closing.enter_context(_own_environment())
                    processors = self._workers or os.cpu_count() or 1
                    self.ray.init(address="local", num_cpus=processors, **quiet)
            except BaseException as problem:
                self._closing.close()
                if not isinstance(problem, Exception):
                    self.ray.shutdown()
                    raise
                raise self._not_connected(problem) from problem
        self._closing.callback(self.ray.shutdown)

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
    known = _found_by_ray() if address == "auto" else address
    host, _, port = known.rpartition(":")
    if not host or not port.isdecimal() or "://" in known:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SEC).close()
    except OSError as problem:
        raise ConnectionError(f"nothing answers at {known} ({problem.strerror or problem})") from problem


def _found_by_ray() -> str:
    """Return the address that Ray has noted of a cluster on this machine, which may be gone; empty for none."""
    with contextlib.suppress(Exception):  # no public part of Ray
        return str(importlib.import_module("ray._private.services").canonicalize_bootstrap_address("auto"))
    return ""


def places_of_code() -> tuple[str, list[str]]:
    """Return the current folder, and where modules are found."""
    return str(Path.cwd()), [str(Path(path).absolute()) for path in sys.path if path]


def use_code_in(paths: Iterable[str]) -> None:
    """Find modules where the driver finds them, in a worker on a machine that has these places."""
    sys.path.extend(path for path in paths if path not in sys.path and Path(path).exists())


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """Set the environment of a cluster that is started here, where the user has not, while the context lasts."""
    has_token = any(name in os.environ for name in _TOKENS)
    own = {
        key: value for key, value in _OWN_CLUSTER.items() if not (key in os.environ or (key in _TOKENS and has_token))
    }
    earlier = dict(os.environ)
    os.environ.update(own)
    try:
        yield
    finally:
        for key in (*own, *_TOKENS, "PYTHONBREAKPOINT"):  # of which Ray sets some itself
            if key not in earlier:
                os.environ.pop(key, None)
        with contextlib.suppress(Exception):  # else Ray would go on with tokens, which other clusters may not have
            raylet = importlib.import_module("ray._raylet")
            raylet.Config.initialize("")
            raylet.AuthenticationTokenLoader.instance().reset_cache()


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

    Who is cancelled waits no longer, but the call goes on: in the thread of Ray's client a cancelled one is an error.
    """
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def tell(_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(end)

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    answer = reference.future()
    answer.add_done_callback(tell)
    await ended
    return answer.result()


def why_lost(problem: BaseException) -> str:
    """Say in a few words why an actor is gone."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if "died because its node has died" in str(problem):
        return "its machine is gone"
    if type(problem).__name__ == "ActorDiedError" and "creation task" in str(problem):
        return lines[-1]
    return "its process is gone"
