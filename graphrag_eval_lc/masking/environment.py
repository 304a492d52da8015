"""Knows secrets by their value: those in environment variables, and those that a config or an option named."""

import html
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from graphrag_eval_lc.masking.rules import MASK

_SHORTEST_REMEMBERED = 6
_SHORTEST = 8  # characters; shorter values of variables are not masked
_remembered: set[str] = set()
# Parts of a variable's name that mark a secret, also if other parts follow: API_KEY_OPENAI, PGPASS_V2.
_NO_PARTS = "monkey|turkey|donkey|hockey|jockey|whiskey|hotkey|(?:by|com|encom|over|sur|tres|under)pass"
_PASSWORDS = "password|passwd|passphrase|passcode|secret|credential"
_SECRET_PART = re.compile(
    rf"(?!(?:{_NO_PARTS})s?[0-9]*\Z)(?:[a-z0-9]*(?:{_PASSWORDS}|key|token|auth|cookie|pwd|jwt)s?|[a-z0-9]*pass|creds?"
    r"|authorization|bearers?|pats?|pems?|pw)[0-9]*"
)
_PASSWORD_PART = re.compile(rf"[a-z0-9]*(?:{_PASSWORDS})s?[0-9]*")
_VERSION = re.compile("v?[0-9]+")
# A name with one of these endings does not hold a secret: TOKEN_URL, AUTH_METHOD.
_ABOUT_SECRETS = re.compile(
    "algorithm|audience|backend|count|dir|domain|enabled|endpoint|expiry|file|format|host|issuer|length|limit"
    "|method|mode|name|path|port|prefix|provider|realm|scheme|scopes?|server|size|timeout|ttl|type|uri|url"
    "|user(?:name)?|vault"
)
_HUMP_OF_VARIABLES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_PLACE = re.compile(
    r"(?:[/~<]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|[a-z][a-z0-9+.-]*://[^@]*$"
    r"|[\w./@-]+\.(?:pem|key|crt|pub|p12|pfx|json|ya?ml|toml|txt|env)$)"
)
_NUMBER = re.compile(r"[0-9.,:+\-eE]+")
_BETWEEN_WORDS = re.compile("[ ._-]")
_LONGEST_WORD = 19
_WORDS = frozenset({"password", "passwort", "changeme", "disabled", "required", "optional", "production", "localhost"})


def remember_secret(value: str | None) -> None:
    """Mask a value from now on, whatever it looks like, because an endpoint may echo the key of a config."""
    if value is not None and len(value.strip()) >= _SHORTEST_REMEMBERED:
        _remembered.add(value.strip())


def remember_secrets_of(variables: Mapping[str, str]) -> None:
    """Mask the values of variables with the names of secrets from now on, even after the variables are unset."""
    for name, value in variables.items():
        for secret in _secrets_in(name, value.strip()):
            remember_secret(secret)


class _Known(NamedTuple):
    """The secrets that were found, and the environment that they were found in."""

    environment: dict[Any, Any]
    remembered: frozenset[str]
    secrets: tuple[str, ...]


_known = _Known({}, frozenset(), ())


def known_secrets() -> tuple[str, ...]:
    """Return the remembered secrets, and the values of environment variables with secret names, the longest first."""
    global _known
    # os.environ decodes each name when it is read; comparing its internal dict takes a hundredth of the time.
    environment = getattr(os.environ, "_data", None)
    if environment is None or _known.environment != environment or _known.remembered != _remembered:
        secrets = set(_remembered)
        for name in os.environ:
            if _secret_part(name):  # most values need not be decoded
                secrets.update(_secrets_in(name, os.environ.get(name, "").strip()))
        ordered = tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))
        _known = _Known(dict(environment or {}), frozenset(_remembered), ordered)
    return _known.secrets


@lru_cache(maxsize=16)
def pattern_of(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds secrets, also as JSON, Python, URLs and HTML write them.

    A secret of letters only is not masked inside a longer word.
    """
    written = {form: None for secret in secrets for form in _forms(secret)}
    longest_first = sorted(written, key=lambda form: -len(form))
    return re.compile(
        "|".join(rf"(?<!\w){re.escape(form)}(?!\w)" if form.isalpha() else re.escape(form) for form in longest_first)
    )


def _forms(secret: str) -> set[str]:
    escaped = json.dumps(secret)[1:-1]
    return {
        secret,
        escaped,
        json.dumps(escaped)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        quote(secret.encode("utf-8", "surrogatepass"), safe=""),
        html.escape(secret),
    }


@lru_cache(maxsize=1024)
def _secret_part(name: str) -> str:
    """Return the last part of a variable's name that marks a secret; "" if there is none."""
    parts = [part for part in _HUMP_OF_VARIABLES.sub("_", name).lower().split("_") if not _VERSION.fullmatch(part)]
    if not parts or _ABOUT_SECRETS.fullmatch(parts[-1]):
        return ""
    return next((part for part in reversed(parts) if _SECRET_PART.fullmatch(part)), "")


def _secrets_in(name: str, value: str) -> list[str]:
    """Return the secrets in a variable's value: the whole value, the password in ``user/password``, or listed keys."""
    part = _secret_part(name)
    if not part or not _is_secret_value(part, value):
        return []
    inner = []
    if part.endswith(("auth", "bearer", "cookie")):
        inner = re.split("[ ,;:/=]+", value)[1:]
    elif part.endswith("s"):
        inner = re.split(r"[\s,;\"'\[\]]+", value)
    return [value, *(each for each in inner if each != value and _is_secret_value(part, each))]


def _is_secret_value(part: str, value: str) -> bool:
    if len(value) < _SHORTEST or MASK in value or _PLACE.match(value) or _NUMBER.fullmatch(value):
        return False
    if _PASSWORD_PART.fullmatch(part):
        return value.lower() not in _WORDS
    return not all(map(_is_word, _BETWEEN_WORDS.split(value)))  # SORT_KEY=created_at is not a secret


def _is_word(text: str) -> bool:
    return text.isalpha() and len(text) <= _LONGEST_WORD and (text.islower() or text.isupper() or text.istitle())
