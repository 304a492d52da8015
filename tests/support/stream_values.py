"""Write callback arguments as JSON and read them back: messages with their identity, LangGraph objects, exceptions."""

import base64
import contextlib
import dataclasses
import importlib
from collections import namedtuple
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, create_model

PACKAGES = ("langchain", "langgraph", "pydantic", "builtins", "asyncio", "openai", "anthropic", "mcp")
SHORT = ("langchain_core.messages", "langchain_core.outputs", "langchain_core.documents", "langgraph.types")
BY_REPR = ("ToolRuntime", "Runtime", "ExecutionInfo")  # configs and callbacks inside them are not recorded


class Encoder:
    """Encodes values as JSON.

    Each message object is written once and then referenced by number. If it has changed since, it is written again
    under the same number.
    """

    def __init__(self) -> None:
        self._messages: dict[int, tuple[BaseMessage, int]] = {}
        self._written: dict[int, Any] = {}

    def encode(self, value: Any, path: tuple[int, ...] = ()) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str | int | float) and not isinstance(value, Enum):
            return next(base(value) for base in (str, int, float) if isinstance(value, base))
        if id(value) in path or len(path) > 40:
            return self._by_repr(value)
        inside = (*path, id(value))
        if isinstance(value, dict):
            return self._mapping(value, inside)
        if type(value) is list:
            return [self.encode(item, inside) for item in value]
        if isinstance(value, BaseMessage):
            return self._message(value, inside)
        return self._object(value, inside)

    def _mapping(self, value: dict[Any, Any], path: tuple[int, ...]) -> Any:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {str(key): self.encode(item, path) for key, item in value.items()}
        return {"$": "dict", "items": [[self.encode(key, path), self.encode(value[key], path)] for key in value]}

    def _message(self, message: BaseMessage, path: tuple[int, ...]) -> Any:
        _, number = self._messages.setdefault(id(message), (message, len(self._messages) + 1))
        fields = self._fields_of(message, path)
        if self._written.get(number) == fields:
            return {"$same": number}
        like = next((other for other, written in self._written.items() if written == fields and other != number), None)
        self._written[number] = fields
        if like is not None:
            return {"$like": like, "$n": number}
        return {"$": _type_name(message), "$n": number, **fields}

    def _object(self, value: Any, path: tuple[int, ...]) -> Any:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"$": "namedtuple", "name": type(value).__name__, "fields": self.encode(value._asdict(), path)}
        if isinstance(value, list | tuple | set | frozenset):
            kind = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
            items = sorted(value, key=repr) if kind in (set, frozenset) else value
            encoded = [self.encode(item, path) for item in items]
            return {"$tuple": encoded} if kind is tuple else {"$": kind.__name__, "items": encoded}
        if isinstance(value, bytes | bytearray | memoryview):
            return {"$": "bytes", "base64": base64.b64encode(bytes(value)).decode()}
        if isinstance(value, UUID | Decimal):
            return {"$": type(value).__name__, "text": str(value)}
        if isinstance(value, datetime | date | time):
            return {"$": type(value).__name__, "text": value.isoformat()}
        if isinstance(value, BaseException):
            return self._error(value, path)
        if isinstance(value, type) or type(value).__name__ in BY_REPR:
            return self._by_repr(value)
        if isinstance(value, BaseModel) or dataclasses.is_dataclass(value) or _is_slotted(value):
            return {"$": _type_name(value), **self._fields_of(value, path)}
        return self._by_repr(value)

    def _fields_of(self, value: Any, path: tuple[int, ...]) -> dict[str, Any]:
        if isinstance(value, BaseModel):
            defaults = {name: field.get_default(call_default_factory=True) for name, field in _plain_fields(value)}
            fields = {name: getattr(value, name) for name in type(value).model_fields} | (value.model_extra or {})
            fields = {name: item for name, item in fields.items() if name not in defaults or item != defaults[name]}
        elif dataclasses.is_dataclass(value):
            defaults = _defaults_of(type(value))
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            fields = {name: item for name, item in fields.items() if name not in defaults or item != defaults[name]}
        else:
            fields = {name: getattr(value, name) for name in type(value).__slots__ if hasattr(value, name)}
        return {name: self.encode(item, path) for name, item in fields.items()}

    def _error(self, error: BaseException, path: tuple[int, ...]) -> Any:
        encoded = {"$": "error", "type": _type_name(error), "args": self.encode(list(error.args), path)}
        if not _is_known(type(error)):
            encoded["base"] = next(_type_name(base) for base in type(error).__mro__ if _is_known(base))
        if next(cls for cls in type(error).__mro__ if "__str__" in vars(cls)).__module__ != "builtins":
            encoded["text"] = str(error)
        return encoded

    @staticmethod
    def _by_repr(value: Any) -> Any:
        return {
            "$": "object",
            "type": type(value).__name__,
            "module": type(value).__module__,
            "text": repr(value)[:200],
        }


class Decoder:
    """Decodes what an `Encoder` wrote, in the same order."""

    def __init__(self) -> None:
        self._messages: dict[int, BaseMessage] = {}

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$same" in value:
            return self._messages[value["$same"]]
        if "$like" in value:
            return self._keep(value["$n"], self._messages[value["$like"]].model_copy(deep=True))
        if "$tuple" in value:
            return tuple(self.decode(value["$tuple"]))
        if "$" not in value:
            return {key: self.decode(item) for key, item in value.items()}
        kind = value["$"]
        if kind in _READERS:
            return _READERS[kind](self, value)
        fields = {key: self.decode(item) for key, item in value.items() if key not in ("$", "$n")}
        made = _made(kind, fields)
        return self._keep(value["$n"], made) if "$n" in value else made

    def _keep(self, number: int, message: BaseMessage) -> BaseMessage:
        """Return the message with a number. A known message keeps its identity and gets the new fields."""
        known = self._messages.setdefault(number, message)
        if known is not message:
            known.__dict__.update(message.__dict__)
        return known


def _made(kind: str, fields: dict[str, Any]) -> Any:
    cls = _class(kind)
    if cls is None:
        return _local_model(kind, tuple(fields)).model_construct(**fields)
    if issubclass(cls, BaseModel):
        return cls.model_construct(**fields)
    made = object.__new__(cls)
    for name, item in (_defaults_of(cls) | fields).items():
        with contextlib.suppress(AttributeError):  # a field that an older version does not have
            object.__setattr__(made, name, item)
    return made


def _error(decoder: Decoder, value: dict[str, Any]) -> BaseException:
    known = _class(value["type"])
    base = known or _class(value["base"])
    own: dict[str, Any] = {"__str__": lambda self: value["text"]} if "text" in value else {}
    if own or known is None:
        name = value["type"].rpartition(":")[2]
        base = type(name, (base,), {**own, "__module__": base.__module__ if known else "agent", "__qualname__": name})
    args = decoder.decode(value["args"])
    try:
        error = base.__new__(base, *args)
    except TypeError:  # such as pydantic's, which cannot be created from their arguments
        error = type(base.__name__, (ValueError,), own)(*args)
    error.args = tuple(args)
    return error


def _placeholder(decoder: Decoder, value: dict[str, Any]) -> Any:
    methods = {"__module__": value["module"], "__repr__": lambda self: value["text"]}
    return type(value["type"], (), methods)()


def _namedtuple(decoder: Decoder, value: dict[str, Any]) -> Any:
    return namedtuple(value["name"], value["fields"])(**decoder.decode(value["fields"]))


_READERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "dict": lambda decoder, value: {decoder.decode(key): decoder.decode(item) for key, item in value["items"]},
    "list": lambda decoder, value: decoder.decode(value["items"]),
    "set": lambda decoder, value: set(decoder.decode(value["items"])),
    "frozenset": lambda decoder, value: frozenset(decoder.decode(value["items"])),
    "bytes": lambda _, value: base64.b64decode(value["base64"]),
    "UUID": lambda _, value: UUID(value["text"]),
    "Decimal": lambda _, value: Decimal(value["text"]),
    "datetime": lambda _, value: datetime.fromisoformat(value["text"]),
    "date": lambda _, value: date.fromisoformat(value["text"]),
    "time": lambda _, value: time.fromisoformat(value["text"]),
    "namedtuple": _namedtuple,
    "error": _error,
    "object": _placeholder,
}


def _plain_fields(value: BaseModel) -> Any:
    return [(name, field) for name, field in type(value).model_fields.items() if not field.is_required()]


def _defaults_of(cls: Any) -> dict[str, Any]:
    """Return a dataclass's defaults, without default factories; nothing for other classes."""
    given = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return {field.name: field.default for field in given if field.default is not dataclasses.MISSING}


def _is_slotted(value: object) -> bool:
    return _is_known(type(value)) and "__slots__" in vars(type(value)) and not callable(value)


def _is_known(cls: type) -> bool:
    return cls.__module__.partition(".")[0].partition("_")[0] in PACKAGES and "<locals>" not in cls.__qualname__


def _type_name(value: object) -> str:
    """Return a class as `module:Name`, as a bare name for some modules, or as `local:Name` if a test defined it."""
    cls = value if isinstance(value, type) else type(value)
    if cls.__module__.startswith(SHORT) and "<locals>" not in cls.__qualname__:
        return cls.__name__
    return f"{cls.__module__}:{cls.__qualname__}" if _is_known(cls) else f"local:{cls.__name__}"


@cache
def _class(kind: str) -> Any:
    module, _, name = kind.rpartition(":")
    if module == "local":
        return None
    if not module:
        return next(found for short in SHORT if (found := getattr(importlib.import_module(short), name, None)))
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@cache
def _local_model(kind: str, fields: tuple[str, ...]) -> type[BaseModel]:
    definitions: Any = dict.fromkeys(fields, (Any, ...))
    return create_model(kind.rpartition(":")[2], **definitions)
