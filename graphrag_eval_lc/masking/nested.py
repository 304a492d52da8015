"""Masking nested values: settings, and what tools took and gave."""

import re
from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.masking.environment import known_secrets
from graphrag_eval_lc.masking.names import is_no_secret, is_soft_name
from graphrag_eval_lc.masking.randomness import looks_random
from graphrag_eval_lc.masking.rules import MASK
from graphrag_eval_lc.masking.texts import masked_with

_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:api_?keys?|(?:access|account|secret|private|signing|encryption|subscription)_?keys?|authorization"
    r"|[a-z]*(?:password|passwd|passphrase|secret)s?|[a-z]*token|credentials?|(?:set_)?cookie)"
)
_MODEL_TOKEN = re.compile(r"(?:.*_)?(?:bos|eos|pad|unk|sep|cls|mask|stop|per|special)_token")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")


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
    return _masked_value(value, known_secrets(), ())


def _masked_value(value: Any, secrets: tuple[str, ...], inside: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return masked_with(value, secrets)
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
        return isinstance(item, str) and is_soft_name(name) and looks_random(item, digests_are=False)
    if isinstance(item, str):
        return not is_no_secret(item)
    return not (isinstance(item, int | float) and name.endswith("token"))
