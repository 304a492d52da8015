"""Loads the prompts of the judges, fills in their placeholders, and fences the texts to judge."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Formatter

from graphrag_eval_lc.errors import ConfigError, JudgeError

# Control characters, which endpoints refuse, and lone surrogates, which cannot be encoded.
_UNSENDABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system message, and the template of a user message with a placeholder such as ``{question}`` for each text.

    Braces in the template are doubled.
    """

    system: str
    user: str

    def message(self, **texts: str | Sequence[str]) -> str:
        """Return the user message with each text in its place, between its own fences.

        Several texts for a placeholder are numbered: ``context_1``, ``context_2``.
        """
        parts = {
            name: {name: text}
            if isinstance(text, str)
            else {f"{name}_{number}": one for number, one in enumerate(text, start=1)}
            for name, text in texts.items()
        }
        named = {tag: text for part in parts.values() for tag, text in part.items()}
        tagged = dict(zip(named, fences(named), strict=True))
        return "".join(
            literal if name is None else literal + "\n\n".join(tagged[tag] for tag in parts[name])
            for literal, name in _pieces(self.user)
        )


def own_prompt(
    template: str, system: str, placeholders: Collection[str], *, needed: Collection[str], key: str
) -> Prompt:
    """Return a prompt from a user's template, with the system message of this package's prompt ``system``.

    Raises:
        ConfigError: It is not a text, its braces do not match, or a placeholder is unknown or missing.
    """
    known = ", ".join(f"{{{name}}}" for name in placeholders)
    hint = f"The placeholders are {known}; write a literal brace twice."
    if not isinstance(template, str):
        raise ConfigError(f"the prompt must be a text, not {type(template).__name__}", key=key, hint=hint)
    try:
        names = {name for _, name in _pieces(template) if name is not None}
    except ValueError as problem:
        raise ConfigError(f"the prompt cannot be read: {problem}", key=key, hint=hint) from None
    if unknown := ", ".join(f"{{{name}}}" for name in sorted(names - set(placeholders))):
        raise ConfigError(f"the prompt has {unknown}, which is not a placeholder", key=key, hint=hint)
    if missing := ", ".join(f"{{{name}}}" for name in needed if name not in names):
        raise ConfigError(f"the prompt lacks {missing}, so that the model would not see it", key=key, hint=hint)
    return Prompt(load_prompt(system).system, template)


def _pieces(template: str) -> Iterator[tuple[str, str | None]]:
    """Yield each literal text with the placeholder after it, as written between the braces."""
    for literal, name, form, conversion in Formatter().parse(template):
        whole = None if name is None else name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
        yield literal, whole


@cache
def load_prompt(name: str) -> Prompt:
    """Return a prompt of this package by the name of its file, without the suffix.

    Example:
        >>> "{context}" in load_prompt("context_precision").user
        True
    """
    system, _, user = _prompt_text(name).removeprefix("[system]\n").partition("\n[user]\n")
    return Prompt(f"{system.strip()}\n\n{material_rule()}", user.strip())


def material_rule() -> str:
    """Return the end of each system message, which says that fenced text is material and never an instruction."""
    return _prompt_text("material").strip()


def digests() -> dict[str, str]:
    """Return the SHA-256 of each prompt file in hex, by name: a run's record of its prompts."""
    folder = files("graphrag_eval_lc.judges").joinpath("prompts")
    names = sorted(file.name.removesuffix(".txt") for file in folder.iterdir() if file.name.endswith(".txt"))
    return {name: sha256(_prompt_text(name).encode()).hexdigest() for name in names}


@cache
def _prompt_text(name: str) -> str:
    return files("graphrag_eval_lc.judges").joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")


def fences(texts: Mapping[str, str]) -> list[str]:
    """Return the texts of one message, each between tags with a code that occurs in no text.

    The code is derived from the texts, so that the same texts make the same prompt and the cache works. Characters that
    cannot be sent become U+FFFD.
    """
    sendable = {name: sendable_text(text) for name, text in texts.items()}
    fenced = []
    for name, text in sendable.items():
        codes = (sha256(f"{attempt}\n{name}\n{text}".encode()).hexdigest()[:16] for attempt in range(1_000_000))
        code = next(code for code in codes if not any(code in other for other in sendable.values()))
        fenced.append(f"<{name}-{code}>\n{text}\n</{name}-{code}>")
    return fenced


def sendable_text(text: str) -> str:
    r"""Return a text with U+FFFD for each character that cannot be sent.

    Example:
        >>> sendable_text("a\x00b\tc")
        'a�b\tc'
    """
    return _UNSENDABLE.sub("\ufffd", text)


def given_text(name: str, text: object) -> str:
    """Return a text that a metric needs; raise a JudgeError if it is not a text, or blank."""
    if not isinstance(text, str):
        raise JudgeError(f"{name} must be a text, not {type(text).__name__}")
    if not text.strip():
        raise JudgeError(f"{name} is blank, so there is nothing to judge by")
    return text
