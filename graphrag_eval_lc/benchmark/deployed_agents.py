"""Finds agents on a LangGraph server by their address, such as ``http://127.0.0.1:2024/agent``."""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
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

from graphrag_eval_lc.benchmark.ready_agents import Agent, taken_by
from graphrag_eval_lc.benchmark.specs import MOST_NAMED, nearest_first
from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.event_loop.bounded_http import RefusedResponseError, bounded_http
from graphrag_eval_lc.masking import masked_text, remember_secret
from graphrag_eval_lc.texts import listed

DEFAULT_KEY_VARIABLE = "LANGSMITH_API_KEY"
_KEY_HEADER = "x-api-key"
_CHECK_SEC = 20.0
_CONNECT_SEC = 5.0
_SILENCE_SEC = 300.0  # what the SDK waits for a server that sends nothing
_MOST_LISTED = 100
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_EXAMPLE = "http://127.0.0.1:2024/agent"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a deployed agent is.

    Attributes:
        server: The server's address, such as ``http://127.0.0.1:2024``; it may end in a path.
        assistant: The assistant's name or id; empty where the address has none.
    """

    server: str
    assistant: str

    def __str__(self) -> str:
        return f"{self.server}/{quote(self.assistant, safe='')}" if self.assistant else self.server


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The key of a server, and the environment variable that it is from."""

    variable: str
    value: str | None = field(repr=False)

    def __str__(self) -> str:
        return f"the key in {self.variable}"


def read_address(spec: str) -> Address:
    """Take an address apart.

    Raises:
        AgentError: It is no address of an assistant, or says more than where it is, such as a password.

    Example:
        >>> read_address("https://graphs.example/eu/My%20agent")
        Address(server='https://graphs.example/eu', assistant='My agent')
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
    return Address(f"{scheme}://{place}{'' if port is None else f':{port}'}{path}", unquote(assistant))


def api_key(variable: str | None) -> ApiKey:
    """Read the key of a server from the environment; it is masked from now on, and never written anywhere.

    Args:
        variable: The name of the environment variable; None: LANGSMITH_API_KEY, where it is set.

    Raises:
        OptionError: The variable is not set, its name is none, or its value cannot be a key.
    """
    name = DEFAULT_KEY_VARIABLE if variable is None else variable
    # What is no usual name may be the key itself.
    shown = name if _SHOWN_VARIABLE.fullmatch(name) else "that agent_key_env names"
    if not _VARIABLE.fullmatch(name):
        raise _key_error("it is no name of an environment variable", "Give the variable's name, not the key itself.")
    value = os.environ.get(name, "").strip() or None
    if value is None and variable is not None:
        raise _key_error(f"the environment variable {shown} is not set", "Set it to the key; give its name here.")
    if value is not None and not (value.isascii() and value.isprintable()):
        raise _key_error(f"the environment variable {shown} holds no key", "A key has printable ASCII characters only.")
    remember_secret(value)
    return ApiKey(name, value)


def _key_error(what: str, hint: str) -> OptionError:
    return OptionError(what, key="agent_key_env", hint=hint)


async def aconnect(spec: str, key_variable: str | None, stack: AsyncExitStack, *, has_input_fn: bool = False) -> Agent:
    """Find an assistant on its server.

    Args:
        spec: Its address.
        key_variable: The environment variable with the server's key; None: LANGSMITH_API_KEY.
        stack: Closes the connections.
        has_input_fn: Whether a function makes its input; otherwise the server is asked what it takes.

    Raises:
        AgentError: The server is not there or is none of LangGraph, refuses the key, or has no such assistant; or the
            assistant takes no messages.
        OptionError: The key's variable is not set.
    """
    address, key = read_address(spec), api_key(key_variable)
    headers = {} if key.value is None else {_KEY_HEADER: key.value}
    # As the SDK's client, without the proxies of the environment, and without its retries, which take seconds.
    transport = httpx.AsyncHTTPTransport()
    checking = httpx.AsyncClient(base_url=address.server, transport=transport, headers=headers, timeout=_CHECK_SEC)
    async with _bounded(checking) as client:
        server = _Server(LangGraphClient(client).assistants, address, key)
        assistant = await server.assistant()
        identifier = str(assistant["assistant_id"])
        takes = "messages" if has_input_fn else taken_by(await server.input_schema(identifier), str(address))
    timeouts = (_CONNECT_SEC, _SILENCE_SEC, _SILENCE_SEC, None)  # no limit for a place in the pool
    remote = get_client(url=address.server, api_key=key.value, timeout=timeouts)
    _bounded(remote.http.client)
    await stack.enter_async_context(remote)
    graph_id, version = assistant.get("graph_id"), assistant.get("version")
    is_known = address.assistant in (graph_id, identifier)
    warnings: tuple[str, ...] = ()
    if key.value is not None and _is_open(address.server):
        warnings = (f"{key} goes to {address.server} unencrypted; write https:// where it speaks HTTPS",)
    return Agent(
        _ServedGraph(address.assistant if is_known else identifier, client=remote, name=address.assistant),
        takes,
        str(address),
        spec=str(address),
        source=f"graph {graph_id}, assistant {identifier}" + ("" if version is None else f", version {version}"),
        warnings=warnings,
        resources=stack,
        acancel=partial(_acancel, remote),
    )


def _bounded(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """Let a client follow redirects on its server, refuse all others, and refuse bodies that are too large."""
    client.follow_redirects, client.event_hooks = True, bounded_http()
    return client


class _ServedGraph(RemoteGraph):
    """A graph on a server, whose answer without a state is an error; RemoteGraph returns None for it."""

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


@dataclass(frozen=True, slots=True)
class _Server:
    """A server that may be away, or not be LangGraph's."""

    assistants: AssistantsClient
    address: Address
    key: ApiKey

    async def assistant(self) -> Mapping[str, Any]:
        """Return the assistant that the address names, by its id, its graph or its name."""
        wanted = self.address.assistant
        if _is_uuid(wanted):
            for found in await self._asked(self.assistants.get(wanted), may_be_missing=True):
                return found
        elif wanted:
            own = {"created_by": "system"}
            for each in await self._search(graph_id=wanted, metadata=own, limit=1):
                if each.get("graph_id") == wanted:
                    return each
            named = [each for each in await self._search(name=wanted) if each.get("name") == wanted]
            if len(named) > 1:
                ids = ", ".join(str(each["assistant_id"]) for each in named)
                what = f"the server {self.address.server} has {len(named)} assistants with the name {wanted}"
                raise AgentError(what, hint=f"Give the id of one: {ids}.")
            if named:
                return named[0]
        raise self._none_such(await self._search())

    async def _search(self, limit: int = _MOST_LISTED, **wanted: Any) -> list[Mapping[str, Any]]:
        return await self._asked(self.assistants.search(limit=limit, **wanted), may_be_missing=bool(wanted))

    async def input_schema(self, identifier: str) -> Mapping[str, Any]:
        """Return the JSON Schema of the assistant's input; empty if the server does not say."""
        try:
            async with asyncio.timeout(_CHECK_SEC):
                schemas: Any = await self.assistants.get_schemas(identifier)
            schema = schemas.get("input_schema") or schemas.get("state_schema")  # some types have only the latter
        except Exception:
            return {}
        return schema if isinstance(schema, Mapping) else {}

    async def _asked(self, request: Awaitable[Any], *, may_be_missing: bool) -> list[Mapping[str, Any]]:
        """Return the assistants that a request finds.

        Raises:
            AgentError: Why the response cannot be used.
        """
        server = self.address.server
        what = f"{server} does not list its assistants, as a LangGraph server does"
        hint = f"Start it (langgraph dev), look at its log, or check the address (http or https), such as {_EXAMPLE}; "
        hint += "if the server has its own certificate, SSL_CERT_FILE names it."
        try:
            async with asyncio.timeout(_CHECK_SEC):
                found = await request
            several = found if isinstance(found, list) else [found]
            if all(isinstance(each, Mapping) and "assistant_id" in each for each in several):
                return several
        except httpx.HTTPStatusError as problem:
            status = problem.response.status_code
            if may_be_missing and status in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY):
                return []
            what += f" ({status} {httpx.codes.get_reason_phrase(status)})"
            if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                is_set = self.key.value is not None
                what = f"the server {server} " + (
                    f"refuses {self.key} ({status})"
                    if is_set
                    else f"asks for a key ({status}), and {self.key.variable} is not set"
                )
                hint = "Set the right key, or name its variable with --agent-key-env (agent_key_env)."
        except (httpx.TimeoutException, TimeoutError):
            what = f"the server {server} does not answer within {_CHECK_SEC:g} s"
        except RefusedResponseError as problem:
            what = str(problem)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            what = f"there is no LangGraph server at {server} ({str(problem) or type(problem).__name__})"
        except (ValueError, RecursionError):  # it is no JSON
            pass
        raise AgentError(masked_text(what), hint=hint)

    def _none_such(self, assistants: Sequence[Mapping[str, Any]]) -> AgentError:
        server, wanted = self.address.server, self.address.assistant
        names = [str(each[key]) for key in ("graph_id", "name") for each in assistants if each.get(key)]
        known = nearest_first(wanted, dict.fromkeys(names))
        what = f"the server {server} has no assistant {wanted}" if wanted else f"{server} names no assistant"
        hint = f"It has {listed(known, MOST_NAMED)}; write {Address(server, known[0])}." if known else "It has none."
        return AgentError(what, hint=hint)


def _is_open(server: str) -> bool:
    """Return whether others can read what is sent to a server: it leaves this machine unencrypted."""
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
