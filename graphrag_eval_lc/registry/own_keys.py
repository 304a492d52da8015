"""The keys that users register: which can be one, and whose each is."""

import re
from typing import Any

from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.registry.modules import spec_of
from graphrag_eval_lc.registry.registrations import registered_now
from graphrag_eval_lc.registry.reserved_keys import is_reserved_key

# Commas, equals signs and blanks stand between keys on the command line.
_KEY = re.compile(r"[^\W\d][\w.@-]*")
# What stands beside a metric has its key with one of these.
_ENDINGS = ("_error", "_reason", "_cost")
_KINDS = ("metric", "evaluator")


def check_own_key(key: object, kind: str, function: Any) -> str:
    """Give the key under which a function may be registered.

    Args:
        key: The key.
        kind: What is registered, ``metric`` or ``evaluator``.
        function: The function; where it is the one that has the key already, as when a module is loaded again, it
            takes the other's place.

    Raises:
        PluginError: The key is none, is one of the results' own, or is another function's.
    """
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise PluginError(
            f"the key of {_a(kind)} cannot be {key!r:.80}",
            mend="Write letters, digits, _ . @ or -, and a letter or _ first, such as saved_sec.",
        )
    ending = next((ending for ending in _ENDINGS if key.endswith(ending)), None)
    if ending is not None:
        raise PluginError(
            f"the key of {_a(kind)} cannot be {key}, as keys that end in {ending} say more of another",
            mend="Rename it.",
        )
    if is_reserved_key(key) or is_reserved_key(f"{key}_error"):
        raise PluginError(f"the key {key} is one of the results' own, so that no {kind} can have it", mend="Rename it.")
    registered = registered_now()
    for other in _KINDS:
        owner = registered.get(f"{other} {key}")
        if owner is not None and (other != kind or spec_of(owner) != spec_of(function)):
            raise PluginError(
                f"the key {key} of {spec_of(function)} is that of the {other} {spec_of(owner)}",
                mend=_mend_of_two(owner, function),
            )
    return key


def _mend_of_two(owner: Any, function: Any) -> str:
    names = [spec_of(each).partition(":")[0] for each in (owner, function)]
    code, others = (getattr(each, "__code__", None) for each in (owner, function))
    if code is not None and code == others and code.co_filename == others.co_filename and len({*names}) > 1:
        return f"Both are of one file, which came as {' and as '.join(names)}; name it in one way everywhere."
    return "Give one of them another key."


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
