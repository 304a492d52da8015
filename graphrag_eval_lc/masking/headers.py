"""What HTTP headers tell: Bearer and Basic, Digest and other schemes with parameters, cookies."""

import base64
import re

from graphrag_eval_lc.masking.rules import ENDS_TEXT, MASK, Rule, joined

_CREDENTIAL = r"(?:[A-Za-z0-9._~+/=|-]|\\{1,3}/)"
# A quote that ends a text in a text, which ends with it.
_ENDS_BOTH = rf"""(?! \\{{0,7}}" {ENDS_TEXT.replace("(?!", "(?=", 1)} )"""
# Of a quoted text the closing quote has as many backslashes as the first one; it may be cut off.
_QUOTED = joined(
    rf"""(?<!\\) {slashes}" {ENDS_TEXT} {_ENDS_BOTH} [^"\\\n]*+ (?: {slashes}" )?"""
    for slashes in ("", *(r"\\" * n for n in (1, 3, 7)))
)
_VALUE = rf"""(?: {_QUOTED} | [^\s,;"'\\<>()\[\]{{}}]++ )"""
_NAME = r"[A-Za-z_*-]{1,40} [ ]? = [ ]?"
_PARAMETERS = rf"(?P<parameters> {_NAME} {_VALUE} (?: [ ]?,\s{{0,12}} {_NAME} {_VALUE} )*+ )"
_PROOF = re.compile(r"(?:response|signature|mac|cnonce|token|assertion|credential)\s?=", re.IGNORECASE | re.ASCII)

_COOKIE_NAME = r"[A-Za-z0-9!#$%&*.^_`|~+-]{1,256}"
_COOKIE_VALUE = rf"""(?: {_QUOTED} | [^\s;"'\\<>{{}}]*+ )"""
_COOKIES = rf"""
    (?P<name> (?i: set-? | http_ )? (?i: cookie2? ) )
    (?P<separator> \\{{0,7}}["']? \s{{0,3}} [:=] \s{{0,3}} \[? (?:b?\\{{0,7}}["'](?!\s*[:,}}\]]))? )
    {_COOKIE_NAME} = {_COOKIE_VALUE}
    (?: ; [ ]{{0,3}} {_COOKIE_NAME} (?: = (?: (?<=xpires=)[A-Za-z0-9,: -]{{20,40}} | {_COOKIE_VALUE} ) )? )*+ ;?
"""


def _masked_bearer(match: re.Match[str]) -> str | None:
    token = match["token"]
    is_secret = any(map(str.isdigit, token)) or len(token) >= 32 or re.search("[a-z][A-Z]", token)
    return match["scheme"] + MASK if is_secret else None


def _masked_basic(match: re.Match[str]) -> str | None:
    try:
        decoded = base64.b64decode(match["token"].replace("%3D", "="), validate=True).decode()
    except ValueError:
        return None
    return match["scheme"] + MASK if ":" in decoded and decoded.isprintable() else None


def _masked_parameters(match: re.Match[str]) -> str | None:
    return match["scheme"] + MASK if _PROOF.search(match["parameters"]) else None


def _masked_cookies(match: re.Match[str]) -> str:
    return match["name"] + match["separator"] + MASK


RULES = (
    Rule(
        "bearer token",
        ("bearer",),
        rf"(?P<scheme> (?i:bearer) (?:[ \t]{{1,8}}|%20|\+) ) (?P<token> {_CREDENTIAL}{{8,}}+ )",
        _masked_bearer,
    ),
    Rule(
        "user and password",
        ("basic",),
        r"(?P<scheme> (?i:basic) (?:[ \t]{1,8}|%20|\+) ) (?P<token> [A-Za-z0-9+/]{4,}+ (?:={0,2}|(?:%3D){0,2}) )",
        _masked_basic,
    ),
    Rule(
        "credentials of a request",
        ("authorization",),
        rf"""
        (?P<scheme> (?i:authorization) (?: \\{{0,7}}["'] )? [ ]{{0,3}} [:=] \s{{0,3}} (?: b?\\{{0,7}}["'] )?
            [A-Za-z0-9-]{{2,30}} [ ]{{1,3}} )
        {_PARAMETERS}
        """,
        _masked_parameters,
    ),
    Rule(
        "credentials of a request",
        ("digest ", "oauth ", "hawk ", "aws4-hmac-sha256", "signature ", "goog4-rsa-sha256"),
        rf"""
        (?P<scheme> (?i: digest | oauth | hawk | aws4-hmac-sha256 | goog4-rsa-sha256 | signature ) [ ]{{1,3}} )
        {_PARAMETERS}
        """,
        _masked_parameters,
    ),
    Rule("cookies", ("set-cookie", "cookie", "http_cookie"), _COOKIES, _masked_cookies),
)
