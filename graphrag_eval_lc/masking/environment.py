"""Secrets that are known by their value: those of the environment, and those that a config or an option gave."""

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
_remembered: set[str] = set()
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:[A-Z]*KEY|[A-Z]*TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)", re.IGNORECASE)
_PLACE = re.compile(r"(?:[/~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|https?://[^@]*$)")
_NUMBER = re.compile(r"[0-9.,:+\-eE]+")
_WORDS = frozenset({"password", "passwort", "changeme", "disabled", "required", "optional", "production", "localhost"})


def remember_secret(value: str | None) -> None:
    """Mask a value from now on, whatever it looks like: an endpoint may echo a config's key."""
    if value is not None and len(value.strip()) >= _SHORTEST_REMEMBERED:
        _remembered.add(value.strip())


def remember_secrets_of(variables: Mapping[str, str]) -> None:
    """Mask the values of variables that are secrets by their names from now on, also once they are unset.

    Args:
        variables: Values by name.
    """
    for name, value in variables.items():
        if _is_secret_variable(name) and _is_secret_value(name, value.strip()):
            remember_secret(value)


class _Known(NamedTuple):
    """What was found, and in which environment."""

    environment: dict[Any, Any]
    remembered: frozenset[str]
    secrets: tuple[str, ...]


_known = _Known({}, frozenset(), ())


def known_secrets() -> tuple[str, ...]:
    """Return the remembered secrets, and those of the environment by their names, the longest first."""
    global _known
    # Going through os.environ decodes each name; its own dict is compared in a hundredth of the time.
    environment = getattr(os.environ, "_data", None)
    if environment is None or _known.environment != environment or _known.remembered != _remembered:
        _known = _Known(dict(environment or {}), frozenset(_remembered), _found_secrets())
    return _known.secrets


def _found_secrets() -> tuple[str, ...]:
    secrets = set(_remembered)
    for name in os.environ:
        if _is_secret_variable(name):
            value = os.environ.get(name, "").strip()
            if _is_secret_value(name, value):
                secrets.add(value)
    return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))


@lru_cache(maxsize=16)
def pattern_of(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds secrets, also as JSON, Python, URLs and HTML write them.

    A value of letters alone may be a part of a longer word, which is then no secret.
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
def _is_secret_variable(name: str) -> bool:
    return _SECRET_VARIABLE.fullmatch(name) is not None


def _is_secret_value(name: str, value: str) -> bool:
    if len(value) < 8 or MASK in value or _PLACE.match(value) or _NUMBER.fullmatch(value):
        return False
    if value.isalpha() and (value.islower() or value.isupper() or value.istitle()):
        is_password = not name.upper().endswith(("KEY", "TOKEN"))  # SORT_KEY=modified is no secret
        return (is_password and value.lower() not in _WORDS) or len(value) >= 20
    return True
