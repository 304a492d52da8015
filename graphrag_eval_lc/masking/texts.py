"""Masking the secrets of a text: all rules together."""

from graphrag_eval_lc.masking import headers, key_blocks, names, tokens, urls
from graphrag_eval_lc.masking.environment import known_secrets, pattern_of
from graphrag_eval_lc.masking.rules import MASK, Found, RuleSet, hint_of

# Where several fit at one place, the first one counts.
_RULES = RuleSet((*key_blocks.RULES, *headers.RULES, *tokens.RULES, *urls.RULES, *names.RULES))


def masked_text(text: str) -> str:
    """Return a text with its secrets replaced by ``***``.

    Secrets are: keys of known providers that stand as a whole token (``sk-…``, ``ghp_…``, ``AIza…`` and a hundred
    others); blocks of private keys; what follows ``Bearer``, ``Basic`` or ``Digest``, and cookies; the values of
    ``api_key``, ``password``, ``token``, ``secret`` and the like as ``name=value``, header, JSON or URL query, and
    those of ``key``, ``sig``, ``session`` and the like where they look random; the password in
    ``user:password@host``; and the values of environment variables that have a part such as KEY, TOKEN, SECRET, PASS,
    PASSWORD, AUTH, BEARER, COOKIE, PAT or PEM in their name, but for words, paths, numbers and what is shorter than 8
    characters.
    References such as ``${OPENAI_API_KEY}`` stay. Masking a masked text changes nothing, and JSON stays JSON.

    Example:
        >>> masked_text("401 for https://kg:pa55@graph.example/sparql?api_key=5f2a99c1&limit=10")
        '401 for https://kg:***@graph.example/sparql?api_key=***&limit=10'
    """
    return masked_with(text, known_secrets())


def masked_and_found(text: str) -> tuple[str, list[Found]]:
    """Return a text with its secrets masked, and what they were, by their shape.

    Example:
        >>> masked_and_found("password=pa55word")
        ('password=***', [Found(kind='value of a secret name', hint='p… (8 characters)', at=0)])
    """
    found: list[Found] = []
    return masked_with(text, known_secrets(), found), found


def masked_with(text: str, secrets: tuple[str, ...], found: list[Found] | None = None) -> str:
    """Return a text with its secrets masked, and these ones; what is masked is added to ``found``."""
    if secrets:
        pattern = pattern_of(secrets)
        if found is not None:
            found += (
                Found("value of an environment variable", hint_of(match[0]), match.start())
                for match in pattern.finditer(text)
            )
        text = pattern.sub(MASK, text)
    return _RULES.masked(text, found)
