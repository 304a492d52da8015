"""Masks the secrets in texts, in settings, and in the arguments and outputs of tools, all with one table of rules.

Some secrets are known by their value: those in environment variables, and those that a config or an option named.
"""

import html
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from graphrag_eval_lc.masking.names import NAME_RULES, SOFT_NAME, is_folder, is_no_secret, is_opaque, looks_random
from graphrag_eval_lc.masking.rules import FORM_RULES, MASK, TOKEN_RULES, Found, RuleSet, hint_of

# If several rules match at the same position, the first one counts.
_RULES = RuleSet((*FORM_RULES, *TOKEN_RULES, *NAME_RULES))
_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:api_?keys?|(?:access|account|secret|private|signing|encryption|subscription)_?keys?|authorization"
    r"|[a-z]*(?:password|passwd|passphrase|passcode|pwd|secret)s?|[a-z]*token|credentials?|(?:set_)?cookie)"
)
_PASSWORD = re.compile(
    r"(?:.*_)?(?:[a-z]*(?:password|passwd|passphrase|passcode|pwd)s?|(?:client|api)_?secret|api_?key|authorization|(?:set_)?cookie)"
)
_MODEL_TOKEN = re.compile(r"(?:.*_)?(?:bos|eos|pad|unk|sep|cls|mask|stop|per|special)_token")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")


def masked_text(text: str) -> str:
    """Return a text with its secrets replaced by ``***``.

    Secrets are: keys of known providers as a whole token (``sk-…``, ``ghp_…``, ``AIza…`` and a hundred
    others); blocks of private keys; what follows ``Bearer``, ``Basic`` or ``Digest``, and cookies; the values of
    ``api_key``, ``password``, ``token``, ``secret`` and the like as ``name=value``, header, JSON or URL query, and
    those of ``key``, ``sig``, ``session`` and the like if they look random; the password in
    ``user:password@host``; and the values of environment variables that have a part such as KEY, TOKEN, SECRET, PASS,
    PASSWORD, AUTH, BEARER, COOKIE, PAT or PEM in their name, except words, paths, numbers and what is
    shorter than 8 characters.
    References such as ``${OPENAI_API_KEY}`` stay. Masking a masked text changes nothing, and JSON stays JSON.

    Example:
        >>> masked_text("401 for https://kg:pa55@graph.example/sparql?api_key=5f2a99c1&limit=10")
        '401 for https://kg:***@graph.example/sparql?api_key=***&limit=10'
    """
    return masked_with(text, known_secrets())


def masked_and_found(text: str) -> tuple[str, list[Found]]:
    """Return a text with its secrets masked, and the shape (kind, first characters, length) of each."""
    found: list[Found] = []
    return masked_with(text, known_secrets(), found), found


def masked_with(text: str, secrets: tuple[str, ...], found: list[Found] | None = None) -> str:
    """Return a text without these ``secrets`` and those that the rules find; each is added to ``found``."""
    if secrets:
        pattern = pattern_of(secrets)
        if found is not None:
            found += (
                Found("value of an environment variable", hint_of(match[0]), match.start())
                for match in pattern.finditer(text)
            )
        text = pattern.sub(MASK, text)
    return _RULES.masked(text, found)


def without_masked(value: Any) -> Any:
    """Return a copy of nested dicts and lists without the keys whose values are masked."""
    if isinstance(value, Mapping):
        return {key: without_masked(item) for key, item in value.items() if item != MASK}
    return [without_masked(item) for item in value] if isinstance(value, list) else value


def masked_values(value: Any) -> Any:
    """Return a copy of nested dicts and lists of settings without secrets.

    The values of keys such as ``api_key``, ``Authorization``, ``password`` or ``access_token`` become ``***``. So do
    pydantic's SecretStr and SecretBytes. All other strings are masked as texts. None, booleans and references such
    as ``${OPENAI_API_KEY}`` stay, and so do numbers under a key about tokens (``price_per_token``).

    Example:
        >>> masked_values({"model": "gpt-4o-mini", "api_key": "abc", "max_tokens": 100})
        {'model': 'gpt-4o-mini', 'api_key': '***', 'max_tokens': 100}
    """
    return _masked(value, "", known_secrets(), is_data=False)


def masked_secrets(value: Any) -> Any:
    """Mask the secrets in a tool's arguments or output; everything else stays equal, and of the same type.

    ``redact="secrets"`` uses it. Strings are masked as texts, and so are values under the name of a secret
    (``password``, ``api_key``). RDF terms, IRIs and words under such a name stay, because a query may use it as the
    name of a column.

    Example:
        >>> masked_secrets({"query": "SELECT ?s { ?s a ex:Line }", "headers": {"Authorization": "Bearer k3jd9fLz0q"}})
        {'query': 'SELECT ?s { ?s a ex:Line }', 'headers': {'Authorization': '***'}}
    """
    return _masked(value, "", known_secrets(), is_data=True)


def _masked(value: Any, name: str, secrets: tuple[str, ...], *, is_data: bool, inside: tuple[int, ...] = ()) -> Any:
    """Mask a value that is under a name in snake case; in data, the items of a list count as under the list's name."""
    if hasattr(type(value), "get_secret_value") or (name and _is_secret(name, value, is_data)):
        return MASK
    if isinstance(value, str):
        return masked_with(value, secrets)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if id(value) in inside:
        return f"<{type(value).__name__} inside itself>"
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        return {key: _masked(item, _snake(key), secrets, is_data=is_data, inside=inside) for key, item in value.items()}
    items = [_masked(item, name if is_data else "", secrets, is_data=is_data, inside=inside) for item in value]
    return items if isinstance(value, list) else tuple(items)


def _is_secret(name: str, value: Any, is_data: bool) -> bool:
    """Return whether a value is a secret because of its name. In data it must also look like one, or be a password."""
    if value is None or isinstance(value, bool):
        return False
    is_secret_name = _SECRET_KEY.fullmatch(name) is not None and _MODEL_TOKEN.fullmatch(name) is None
    if isinstance(value, str):
        if not (is_secret_name or SOFT_NAME.fullmatch(name)) or is_no_secret(value) or is_folder(name, value):
            return False
        if is_secret_name:
            return not is_data or _PASSWORD.fullmatch(name) is not None or is_opaque(value)
        return looks_random(value, digests_are=False)
    if isinstance(value, int | float):
        return _PASSWORD.fullmatch(name) is not None if is_data else is_secret_name and not name.endswith("token")
    return is_secret_name and not is_data


@lru_cache(maxsize=1024)
def _snake(key: object) -> str:
    return _HUMP.sub("_", key.strip()).lower().replace(".", "_") if isinstance(key, str) else ""  # neo4j.password


# --- secrets known by their value -------------------------------------------------------------------------------------

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
