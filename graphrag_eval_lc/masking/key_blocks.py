"""Private keys in blocks of lines: PEM in all its forms, OpenPGP, SSH and PuTTY; also on one line, and cut off."""

import re

from graphrag_eval_lc.masking.rules import MASK, Rule

_BREAK = r"(?:\s|\\{1,15}[nrt\s]|%(?:0[AaDd9]|20))"  # YAML ends a line with a backslash where a text goes on
_BASE64 = r"(?:[A-Za-z0-9+/=]|%(?:2[BbFf]|3[Dd])|\\{1,7}/)"
# Lines such as "DEK-Info: AES-256-CBC,6A0F"; a key may be encrypted, and is still not for others.
_HEADER = r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash|Subject|MessageID)\s?:[^\\\n\"']{0,200})"
_CUT = r"(?:…|\.\.\.)"  # where the text was shortened
_MARK = r"-{4,5}[ ]?END"
# From one line to the next where each is a text of its own: in a JSON list, or in a program.
_NEXT_TEXT = rf"""
    (?: \\{{0,7}}["'] \s{{0,40}} [,+]? \s{{0,40}} \\{{0,7}}["']
        (?= {_BASE64}{{16}} | {_MARK} | {_BASE64}++ \\{{0,7}}["'] \s{{0,40}} [,+]? \s{{0,40}} \\{{0,7}}["'] {_MARK} ) )
"""
_BLOCK = rf"""
    (?P<begin> -{{4,5}}[ ]?BEGIN (?:[ ]|\+|%20){{1,3}} (?:[A-Z0-9]{{1,20}}(?:[ ]|\+|%20)){{0,4}}
        PRIVATE (?:[ ]|\+|%20) KEY (?:(?:[ ]|\+|%20)BLOCK)? [ ]?-{{4,5}} )
    (?P<body>
        (?: {_BREAK} | {_HEADER} | {_CUT} | {_NEXT_TEXT} | {_BASE64}{{16,}}+
            | {_BASE64}++(?= {_BREAK}*+ (?: -{{4,5}} | \\*["'`<] | {_CUT} | \Z ) ) )*+
    )
    (?P<end> -{{4,5}}[ ]?END[^-\n"'\\]{{0,80}}-{{4,5}} )?
"""
_PUTTY = rf"""
    (?P<begin> Private-Lines:[ ]?[0-9]{{1,4}} {_BREAK}{{1,4}} )
    (?: {_BREAK} | {_BASE64}{{16,}}+ | {_BASE64}++(?={_BREAK}*+(?:Private-MAC|\\*["'`<]|\Z)) )++
"""
_HAS_KEY = re.compile(_BASE64, re.ASCII)
_BETWEEN_TEXTS = re.compile(_NEXT_TEXT, re.ASCII | re.VERBOSE)


def _masked_block(match: re.Match[str]) -> str | None:
    if _HAS_KEY.search(match["body"]) is None:
        return None
    # What ends one text and begins another stays, so that JSON stays JSON.
    between = [part[0] for part in _BETWEEN_TEXTS.finditer(match[0])]
    lines = MASK + "".join(part if match[0].endswith(part + (match["end"] or "")) else part + MASK for part in between)
    return match["begin"] + lines + (match["end"] or "")


def _masked_putty(match: re.Match[str]) -> str | None:
    return match["begin"] + MASK if _HAS_KEY.search(match[0], len(match["begin"])) else None


RULES = (
    Rule("private key", ("-----begin", "---- begin"), _BLOCK, _masked_block),
    Rule("PuTTY private key", ("private-lines:",), _PUTTY, _masked_putty),
)
