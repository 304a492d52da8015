"""Connects to an agent on a LangGraph server by its address, such as ``http://127.0.0.1:2024/agent``."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from uuid import UUID

import httpx
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import AssistantsClient, LangGraphClient

from graphrag_eval_lc.benchmark.options import MOST_NAMED, nearest_first
from graphrag_eval_lc.benchmark.ready_agents import Agent, taken_by
from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.event_loop.http_connections import RefusedResponseError, bounded_http
from graphrag_eval_lc.masking import masked_text, remember_secret
from graphrag_eval_lc.texts import listed

DEFAULT_KEY_VARIABLE = "LANGSMITH_API_KEY"
_KEY_HEADER = "x-api-key"
_CHECK_SEC = 20.0
_CONNECT_SEC = 5.0
_SILENCE_SEC = 300.0  # how long the SDK waits for a silent server
_MOST_LISTED = 100
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_EXAMPLE = "http://127.0.0.1:2024/agent"


def read_address(spec: str) -> tuple[str, str]:
    """Split an address into the server, which may include a path, and the name or id of the assistant ("" if missing).

    Example:
        >>> read_address("https://graphs.example/eu/My%20agent")
        ('https://graphs.example/eu', 'My agent')
    """
    try:
        parts = urlsplit(spec.strip())
        host, port, scheme = parts.hostname, parts.port, parts.scheme.lower()
    except ValueError as problem:
        raise AgentError(f"the agent's address cannot be read ({problem})", hint=f"Write {_EXAMPLE}.") from None
    if scheme not in ("http", "https") or not host:
        raise AgentError("the agent's address is not one of http or https", hint=f"Write {_EXAMPLE}.")
    if parts.username is not None or parts.password is not None:
        raise AgentError(
            f"the address of the agent at {host} has a user or password in it, which would be written down",
            hint="Give the key in an environment variable, which --agent-key-env (agent_key_env) names.",
        )
    if parts.query or parts.fragment:
        raise AgentError(
            f"the address of the agent at {host} has more than the server and the assistant, behind ? or #",
            hint=f"Write {_EXAMPLE}; --agent-key-env (agent_key_env) names the environment variable of a key.",
        )
    place = f"[{host}]" if ":" in host else host
    path, _, assistant = parts.path.rstrip("/").rpartition("/")
    return f"{scheme}://{place}{'' if port is None else f':{port}'}{path}", unquote(assistant)


def api_key(variable: str | None) -> str | None:
    """Return the server's key from the environment variable; from now on it is masked in all output."""
    name = DEFAULT_KEY_VARIABLE if variable is None else variable
    # A name that is not like a variable's may be the key itself, so it must not be shown.
    shown = name if _SHOWN_VARIABLE.fullmatch(name) else "that agent_key_env names"
    value = os.environ.get(name, "").strip() or None
    problem = None
    if not _VARIABLE.fullmatch(name):
        problem = ("it is not the name of an environment variable", "Give the variable's name, not the key itself.")
    elif value is None and variable is not None:
        problem = (f"the environment variable {shown} is not set", "Set it to the key; give its name here.")
    elif value is not None and not (value.isascii() and value.isprintable()):
        problem = (f"the environment variable {shown} holds no key", "A key has printable ASCII characters only.")
    if problem is not None:
        raise OptionError(problem[0], key="agent_key_env", hint=problem[1])
    remember_secret(value)
    return value


async def aconnect(spec: str, key_variable: str | None, stack: AsyncExitStack, *, has_input_fn: bool = False) -> Agent:
    """Find an assistant on its server."""
    (server, wanted), key = read_address(spec), api_key(key_variable)
    address = f"{server}/{quote(wanted, safe='')}" if wanted else server
    headers = {} if key is None else {_KEY_HEADER: key}
    # Like the SDK's client, but without proxies from the environment and without retries, which take seconds.
    transport = httpx.AsyncHTTPTransport()
    checking = httpx.AsyncClient(base_url=server, transport=transport, headers=headers, timeout=_CHECK_SEC)
    async with _bounded(checking) as client:
        assistants = LangGraphClient(client).assistants
        try:
            assistant = await _assistant(assistants, server, wanted)
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            RefusedResponseError,
            ValueError,
            TimeoutError,
            RecursionError,
        ) as why:
            raise _unusable(why, server, key is not None, key_variable or DEFAULT_KEY_VARIABLE) from None
        identifier = str(assistant["assistant_id"])
        takes = "messages" if has_input_fn else taken_by(await _input_schema(assistants, identifier), address)
    timeouts = (_CONNECT_SEC, _SILENCE_SEC, _SILENCE_SEC, None)  # no limit for a slot in the pool
    remote = get_client(url=server, api_key=key, timeout=timeouts)
    _bounded(remote.http.client)
    await stack.enter_async_context(remote)
    graph_id, version = assistant.get("graph_id"), assistant.get("version")
    is_known = wanted in (graph_id, identifier)
    warnings: tuple[str, ...] = ()
    if key is not None and _is_open(server):
        name = key_variable or DEFAULT_KEY_VARIABLE
        warnings = (f"the key in {name} goes to {server} unencrypted; write https:// if it supports HTTPS",)
    return Agent(
        _ServedGraph(wanted if is_known else identifier, client=remote, name=wanted),
        takes,
        address,
        spec=address,
        source=f"graph {graph_id}, assistant {identifier}" + ("" if version is None else f", version {version}"),
        warnings=warnings,
        acancel=partial(_acancel, remote),
    )


def _bounded(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """Let a client follow redirects only within its server, and refuse bodies that are too large."""
    client.follow_redirects, client.event_hooks = True, bounded_http()
    return client


class _ServedGraph(RemoteGraph):
    """A graph on a server. A stream without a state is an error here; RemoteGraph would return None."""

    async def ainvoke(self, *arguments: Any, **options: Any) -> Any:
        state: Any = None
        try:
            async for each in self.astream(*arguments, **{**options, "stream_mode": "values"}):
                state = each
        except (json.JSONDecodeError, RecursionError, AttributeError) as problem:
            raise ConnectionError(f"the server sent an event that cannot be read: {problem}") from None
        if state is None or state in ({}, [], ""):
            raise ConnectionError("the server ended the stream without a state of the graph")
        return state


async def _acancel(remote: LangGraphClient, thread_id: str) -> None:
    for run in await remote.runs.list(thread_id):
        if run["status"] in ("pending", "running"):
            await remote.runs.cancel(thread_id, run["run_id"], wait=True)


# --- questions to the server ------------------------------------------------------------------------------------------


async def _assistant(assistants: AssistantsClient, server: str, wanted: str) -> Mapping[str, Any]:
    """Return the assistant with this id, of this graph, or with this name."""

    async def found(limit: int = _MOST_LISTED, **by: Any) -> list[Mapping[str, Any]]:
        request = assistants.get(wanted) if "assistant_id" in by else assistants.search(limit=limit, **by)
        try:
            async with asyncio.timeout(_CHECK_SEC):
                known: Any = await request
        except httpx.HTTPStatusError as problem:
            missing = (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
            if by and problem.response.status_code in missing:
                return []
            raise
        several = known if isinstance(known, list) else [known]
        if not all(isinstance(each, Mapping) and "assistant_id" in each for each in several):
            raise ValueError("these are not assistants")
        return several

    if _is_uuid(wanted):
        for each in await found(assistant_id=wanted):
            return each
    elif wanted:
        for each in await found(1, graph_id=wanted, metadata={"created_by": "system"}):
            if each.get("graph_id") == wanted:
                return each
        named = [each for each in await found(name=wanted) if each.get("name") == wanted]
        if len(named) > 1:
            ids = ", ".join(str(each["assistant_id"]) for each in named)
            what = f"the server {server} has {len(named)} assistants with the name {wanted}"
            raise AgentError(what, hint=f"Give the id of one: {ids}.")
        if named:
            return named[0]
    known = await found()
    names = [str(each[key]) for key in ("graph_id", "name") for each in known if each.get(key)]
    nearest = nearest_first(wanted, dict.fromkeys(names))
    what = f"the server {server} has no assistant {wanted}" if wanted else f"{server} names no assistant"
    example = f"{server}/{quote(nearest[0], safe='')}" if nearest else ""
    raise AgentError(
        what, hint=f"It has {listed(nearest, MOST_NAMED)}; write {example}." if nearest else "It has none."
    )


async def _input_schema(assistants: AssistantsClient, identifier: str) -> Mapping[str, Any]:
    """Return the JSON Schema of the assistant's input; empty if the server does not say."""
    try:
        async with asyncio.timeout(_CHECK_SEC):
            schemas: Any = await assistants.get_schemas(identifier)
        schema = schemas.get("input_schema") or schemas.get("state_schema")  # some types have only the latter
    except Exception:
        return {}
    return schema if isinstance(schema, Mapping) else {}


def _unusable(problem: Exception, server: str, has_key: bool, variable: str) -> AgentError:
    """Return the error that explains why the server cannot be used."""
    what = f"{server} does not list its assistants, as a LangGraph server does"
    hint = f"Start it (langgraph dev), look at its log, or check the address (http or https), such as {_EXAMPLE}; "
    hint += "if the server has its own certificate, SSL_CERT_FILE names it."
    if isinstance(problem, httpx.HTTPStatusError):
        status = problem.response.status_code
        what += f" ({status} {httpx.codes.get_reason_phrase(status)})"
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            refused = f"refuses the key in {variable} ({status})"
            what = f"the server {server} " + (
                refused if has_key else f"asks for a key ({status}), and {variable} is not set"
            )
            hint = "Set the right key, or name its variable with --agent-key-env (agent_key_env)."
    elif isinstance(problem, httpx.TimeoutException | TimeoutError):
        what = f"the server {server} does not answer within {_CHECK_SEC:g} s"
    elif isinstance(problem, RefusedResponseError):
        what = str(problem)
    elif isinstance(problem, httpx.HTTPError | httpx.InvalidURL):
        what = f"no LangGraph server answers at {server} ({str(problem) or type(problem).__name__})"
    return AgentError(masked_text(what), hint=hint)


def _is_open(server: str) -> bool:
    """Return whether requests to a server leave this machine unencrypted."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    try:
        is_here = ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost" or host.endswith(".localhost")
    return parts.scheme == "http" and not is_here


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
