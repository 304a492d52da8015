"""Masking secrets in texts and settings, so that none reaches a file, a log or an error message."""

import base64
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

MASK = "***"
_MOST_PASSES = 10  # a mask may lay open another secret; hardly ever more than once


def masked_text(text: str) -> str:
    """Return a text with its secrets replaced by ``***``.

    Secrets are: keys of known providers that stand as a whole token (``sk-…``, ``ghp_…``, ``AIza…`` and others);
    what follows ``Bearer`` or ``Basic``; the values of ``api_key``, ``password``, ``token``, ``secret`` and the like
    as ``name=value``, header, JSON or URL query; the password in ``user:password@host``; and the values of
    environment variables whose names end in KEY, TOKEN, SECRET, PASSWORD, PASSWD or CREDENTIALS.
    References such as ``${OPENAI_API_KEY}`` stay. Masking a masked text changes nothing.

    Example:
        >>> masked_text("401 for https://kg:pa55@graph.example/sparql?api_key=5f2a99c1&limit=10")
        '401 for https://kg:***@graph.example/sparql?api_key=***&limit=10'
    """
    return _masked(text, _known_secrets())


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
        if _SECRET_VARIABLE.fullmatch(name) and _is_secret_value(name, value.strip()):
            remember_secret(value)


def without_masked(value: Any) -> Any:
    """Return a copy of nested dicts and lists without the keys whose values were masked.

    Example:
        >>> without_masked({"model": "m", "api_key": "***"})
        {'model': 'm'}
    """
    if isinstance(value, Mapping):
        return {key: without_masked(item) for key, item in value.items() if item != MASK}
    return [without_masked(item) for item in value] if isinstance(value, list) else value


def masked_values(value: Any) -> Any:
    """Return a copy of nested dicts and lists without secrets.

    The values of keys such as ``api_key``, ``Authorization``, ``password`` or ``access_token`` become ``***``, so do
    pydantic's SecretStr and SecretBytes; all other strings are masked as texts. None, booleans and references such
    as ``${OPENAI_API_KEY}`` stay, and so do numbers under a key about tokens (``price_per_token``).

    Example:
        >>> masked_values({"model": "gpt-4o-mini", "api_key": "abc", "max_tokens": 100})
        {'model': 'gpt-4o-mini', 'api_key': '***', 'max_tokens': 100}
    """
    return _masked_value(value, _known_secrets(), ())


class _Rule(NamedTuple):
    """One sort of secret: its pattern is tried only where an anchor begins in the lower-cased text."""

    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str]], str]


def _masked(text: str, secrets: tuple[str, ...]) -> str:
    if secrets:
        text = _pattern_of(secrets).sub(MASK, text)
    for _ in range(_MOST_PASSES):
        before = text
        for rule in _RULES:
            text = _masked_by(rule, text)
        if text == before:
            break
    return text


def _masked_by(rule: _Rule, text: str) -> str:
    # Finding literals is ten times as fast as a search for a pattern that begins with any of many letters.
    lowered = text.replace("\u0130", "i").lower()  # of all characters only this one gets longer
    starts = sorted(start for anchor in rule.anchors for start in _starts_of(anchor, lowered))
    parts: list[str] = []
    end = 0
    for start in starts:
        match = rule.pattern.match(text, start) if start >= end else None
        if match:
            parts += text[end:start], rule.replacement(match)
            end = match.end()
    return "".join((*parts, text[end:])) if parts else text


def _starts_of(anchor: str, lowered: str) -> Iterator[int]:
    start = lowered.find(anchor)
    while start >= 0:
        yield start
        start = lowered.find(anchor, start + 1)


# --- keys of known providers -----------------------------------------------------------------------------------------

# A token begins after no letter, but for that of an escape such as \n or %3D.
_BEGINNING = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]{20,}")
_WITH_DASHES = re.compile(r"[A-Za-z0-9_-]{20,}")
_TOKEN_BODIES = {  # lengths are somewhat below those in use, since providers change them
    "gsk_": _ALPHANUMERIC,
    "hf_": _ALPHANUMERIC,
    "ghp_": _ALPHANUMERIC,
    "gho_": _ALPHANUMERIC,
    "ghu_": _ALPHANUMERIC,
    "ghs_": _ALPHANUMERIC,
    "ghr_": _ALPHANUMERIC,
    "github_pat_": _WITH_DASHES,
    "glpat-": re.compile(r"(?=.*[0-9])[A-Za-z0-9_-]{20,}"),
    "lsv2_": re.compile(r"(?:pt|sk)_[a-f0-9]{20,}(?:_[a-f0-9]+)?"),
    "xai-": _ALPHANUMERIC,
    "pplx-": _ALPHANUMERIC,
    "nvapi-": _WITH_DASHES,
    "tvly-": re.compile(r"(?=.*[0-9])[A-Za-z0-9_-]{20,}"),
    "AIza": re.compile(r"[A-Za-z0-9_-]{30,}"),
    "AKIA": re.compile(r"[A-Z0-9]{16}"),
    "ASIA": re.compile(r"[A-Z0-9]{16}"),
    **{f"xox{kind}-": re.compile(r"(?=.*[0-9])[A-Za-z0-9-]{10,}") for kind in "abeoprs"},
}
_KNOWN_PREFIX = re.compile(r"(?:proj|svcacct|admin|lf|or-v1|ant-[a-z]+[0-9]+)-[A-Za-z0-9_-]{16,}")
_RUN = re.compile(r"[A-Za-z0-9]{10,}")


def _masked_token(match: re.Match[str]) -> str:
    prefix, body = match["prefix"], match["body"]
    plausible = _is_key_after_sk(body) if prefix == "sk-" else _TOKEN_BODIES[prefix].fullmatch(body) is not None
    return prefix + MASK if plausible else match[0]


def _is_key_after_sk(body: str) -> bool:
    """Tell a key from words with hyphens: by a known beginning, or by a run of characters that is no word."""
    return _KNOWN_PREFIX.fullmatch(body) is not None or any(map(_is_no_word, _RUN.findall(body)))


def _is_no_word(run: str) -> bool:
    return len(run) >= 24 or (any(map(str.isdigit, run)) and (len(run) >= 16 or any(map(str.isupper, run))))


# --- authorization ---------------------------------------------------------------------------------------------------


def _masked_bearer(match: re.Match[str]) -> str:
    token = match["token"]
    is_secret = any(map(str.isdigit, token)) or len(token) >= 32 or re.search("[a-z][A-Z]", token)
    return match["scheme"] + MASK if is_secret else match[0]


def _masked_basic(match: re.Match[str]) -> str:
    try:
        decoded = base64.b64decode(match["token"], validate=True).decode()
    except ValueError:
        return match[0]
    return match["scheme"] + MASK if ":" in decoded and decoded.isprintable() else match[0]


# --- names with values -----------------------------------------------------------------------------------------------

_KEY_OWNERS = ("api", "access", "account", "secret", "private", "signing", "encryption", "subscription")
_KEY = "(?:" + "|".join(rf"(?<={owner})|(?<={owner}[_\ -])" for owner in _KEY_OWNERS) + ")key"
_PAIR = re.compile(
    rf"""
    (?P<name> (?i: authorization | password | passwd | passphrase | secret | token | credentials? | {_KEY} ))
    (?P<key_quote> \\{{0,7}}["'] )?
    (?P<separator> \s{{0,3}} [:=](?![:=]) \s{{0,3}} | %3[DdAa] )
    (?:
        (?P<quote> [BbRrUu]{{0,2}}["'] | \\{{1,7}}["'] )
        (?:
            (?<=[^\\]") (?P<double_quoted> (?: [^"\\\n]++ | \\[^\n] )*+ )
            | (?<=[^\\]') (?P<single_quoted> (?: [^'\\\n]++ | \\[^\n] )*+ )
            | (?<=\\") (?P<escaped_double> (?: [^"\\\n]++ | \\(?!\\{{0,6}}["\n]) )*+ )
            | (?<=\\') (?P<escaped_single> (?: [^'\\\n]++ | \\(?!\\{{0,6}}['\n]) )*+ )
        )
        | (?P<bare>
            (?: (?i:bearer|basic|token|apikey|digest|negotiate) [ ]{{1,3}} )?
            (?: \$\{{\w+\}} | [^\s"'&;<>\\,)\]}}$]++ | \$ | \\(?![nrt"'\\])
                | [,)\]}}](?=[A-Za-z0-9])(?!\w{{1,30}}["']?[:=]) )++
        )
    )
    """,
    re.VERBOSE | re.ASCII,
)
_VALUE_GROUPS = ("double_quoted", "single_quoted", "escaped_double", "escaped_single", "bare")
_NO_SECRETS = frozenset({"", MASK, "none", "null", "true", "false", "undefined"})
_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$\{\w+\}", re.ASCII)
_CALL = re.compile(r"[A-Za-z_][\w.]*\(", re.ASCII)
_SCHEME = re.compile(r"(?i:bearer|basic|token|apikey|digest|negotiate) +", re.ASCII)
_OPAQUE = re.compile(r"(?=.{8,})(?:(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])|(?=.{20,}))[\w./+=~-]+", re.ASCII)


def _masked_pair(match: re.Match[str]) -> str:
    value = next(text for group in _VALUE_GROUPS if (text := match[group]) is not None)
    if _is_no_secret(value) or (match["bare"] and _CALL.fullmatch(value)) or _is_about_tokens(match, value):
        return match[0]
    scheme = _SCHEME.match(value)
    return match[0][: len(match[0]) - len(value)] + (scheme[0] if scheme else "") + MASK


def _is_no_secret(value: str) -> bool:
    return value.lower() in _NO_SECRETS or _REFERENCE.fullmatch(value) is not None


def _is_about_tokens(match: re.Match[str], value: str) -> bool:
    """Tell numbers of tokens, and prose such as ``Unexpected token: 'SELECT'``, from a token's value."""
    name = match["name"].lower()
    is_api_key_in_prose = name == "key" and match.string[match.start() - 1] == " "
    if not name.startswith(("token", "credential")) and not is_api_key_in_prose:
        return False
    if name == "token" and value.isdigit() and len(value) < 8:
        return True
    is_prose = match["key_quote"] is None and ":" in match["separator"]
    return is_prose and (not match["separator"].endswith(" ") or _OPAQUE.fullmatch(value) is None)


# --- environment -----------------------------------------------------------------------------------------------------

_SHORTEST_REMEMBERED = 6
_remembered: set[str] = set()
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:[A-Z]*KEY|[A-Z]*TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)", re.IGNORECASE)
_PLACE = re.compile(r"(?:[/~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|https?://[^@]*$)")
_NUMBER = re.compile(r"[0-9.,:+\-eE]+")
_WORDS = frozenset({"password", "passwort", "changeme", "disabled", "required", "optional", "production", "localhost"})


@lru_cache(maxsize=16)
def _pattern_of(secrets: tuple[str, ...]) -> re.Pattern[str]:
    # A value of letters alone may be a part of a longer word, which is then no secret.
    return re.compile(
        "|".join(rf"(?<!\w){re.escape(secret)}(?!\w)" if secret.isalpha() else re.escape(secret) for secret in secrets)
    )


def _known_secrets() -> tuple[str, ...]:
    """Return the remembered secrets, and those of the environment by their names, the longest first."""
    secrets = {
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.fullmatch(name) and _is_secret_value(name, value.strip())
    } | _remembered
    return tuple(sorted((secret.strip() for secret in secrets), key=lambda secret: (-len(secret), secret)))


def _is_secret_value(name: str, value: str) -> bool:
    if len(value) < 8 or MASK in value or _PLACE.match(value) or _NUMBER.fullmatch(value):
        return False
    if value.isalpha() and (value.islower() or value.isupper() or value.istitle()):
        is_password = not name.upper().endswith(("KEY", "TOKEN"))  # SORT_KEY=modified is no secret
        return (is_password and value.lower() not in _WORDS) or len(value) >= 20
    return True


# --- all together ----------------------------------------------------------------------------------------------------

_RULES = (
    _Rule(
        tuple(prefix.lower() for prefix in ("sk-", *_TOKEN_BODIES)),
        re.compile(rf"{_BEGINNING}(?P<prefix>{'|'.join(('sk-', *_TOKEN_BODIES))})(?P<body>[A-Za-z0-9_-]{{10,}}+)"),
        _masked_token,
    ),
    _Rule(
        ("eyj",),
        re.compile(_BEGINNING + r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+"),
        lambda _: f"eyJ{MASK}",
    ),
    _Rule(
        ("bearer",),
        re.compile(r"(?P<scheme>(?i:bearer)(?:[ \t]{1,8}|%20))(?P<token>[A-Za-z0-9._~+/=-]{8,}+)"),
        _masked_bearer,
    ),
    _Rule(
        ("basic",),
        re.compile(r"(?P<scheme>(?i:basic)(?:[ \t]{1,8}|%20))(?P<token>[A-Za-z0-9+/]{4,}+={0,2})"),
        _masked_basic,
    ),
    _Rule(
        ("authorization", "passw", "passphrase", "secret", "token", "credential", "key"),
        _PAIR,
        _masked_pair,
    ),
    _Rule(
        ("://",),
        re.compile(r"(?P<user>://[^\s/?#:@\"'<>]{0,256}:)(?!\$\{\w+\}@)[^\s/?#\"'<>]+(?=@)"),
        lambda match: match["user"] + MASK,
    ),
)


# --- nested values ---------------------------------------------------------------------------------------------------

_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:api_?keys?|(?:access|account|secret|private|signing|encryption|subscription)_?keys?|authorization"
    r"|[a-z]*(?:password|passwd|passphrase|secret)s?|[a-z]*token|credentials?|(?:set_)?cookie)"
)
_MODEL_TOKEN = re.compile(r"(?:.*_)?(?:bos|eos|pad|unk|sep|cls|mask|stop|per|special)_token")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")


def _masked_value(value: Any, secrets: tuple[str, ...], inside: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return _masked(value, secrets)
    if hasattr(type(value), "get_secret_value"):  # pydantic's SecretStr and SecretBytes
        return MASK
    if not isinstance(value, Mapping | list | tuple):
        return value
    if id(value) in inside:
        return f"<{type(value).__name__} inside itself>"
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        return {
            key: MASK if _is_secret_item(key, item) else _masked_value(item, secrets, inside)
            for key, item in value.items()
        }
    items = [_masked_value(item, secrets, inside) for item in value]
    return items if isinstance(value, list) else tuple(items)


def _is_secret_item(key: object, item: object) -> bool:
    if not isinstance(key, str) or item is None or isinstance(item, bool):
        return False
    name = _HUMP.sub("_", key).lower()
    if not _SECRET_KEY.fullmatch(name) or _MODEL_TOKEN.fullmatch(name):
        return False
    if isinstance(item, str):
        return not _is_no_secret(item)
    return not (isinstance(item, int | float) and name.endswith("token"))
