"""Secrets in the forms of other texts: blocks of private keys, headers of HTTP, cookies, addresses."""

import base64
import re

from graphrag_eval_lc.masking.rules import ENDS_TEXT, MASK, Rule, after_prefix, joined

# --- private keys: PEM in all its forms, OpenPGP and SSH; also on one line, and cut off -------------------------------

_BREAK = r"(?:\s|\\{1,15}[nrt\s]|%(?:0[AaDd9]|20))"  # YAML ends a line with a backslash where a text goes on
_BASE64 = r"(?:[A-Za-z0-9+/=]|%(?:2[BbFf]|3[Dd])|\\{1,7}/)"
# Lines such as "DEK-Info: AES-256-CBC,6A0F"; a key may be encrypted, and is still not for others.
_HEADER = r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash|Subject|MessageID)\s?:[^\\\n\"']{0,200})"
_CUT = r"(?:…|\.\.\.)"  # where the text was shortened
_BLOCK = rf"""
    (?P<begin> -{{4,5}}[ ]?BEGIN (?:[ ]|\+|%20){{1,3}} (?:[A-Z0-9]{{1,20}}(?:[ ]|\+|%20)){{0,4}}
        PRIVATE (?:[ ]|\+|%20) KEY (?:(?:[ ]|\+|%20)BLOCK)? [ ]?-{{4,5}} )
    (?P<body>
        (?: {_BREAK} | {_HEADER} | {_CUT} | {_BASE64}{{16,}}+
            | {_BASE64}++(?= {_BREAK}*+ (?: -{{4,5}} | \\*["'`<] | {_CUT} | \Z ) ) )*+
    )
    (?P<end> -{{4,5}}[ ]?END[^-\n"'\\]{{0,80}}-{{4,5}} )?
"""
_HAS_KEY = re.compile(_BASE64, re.ASCII)


def _masked_block(match: re.Match[str]) -> str | None:
    return match["begin"] + MASK + (match["end"] or "") if _HAS_KEY.search(match["body"]) else None


# --- headers of HTTP: Bearer and Basic, Digest and other schemes with parameters, cookies -----------------------------

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


# --- addresses: passwords before the host, webhooks whose address is the secret ---------------------------------------

_SLASH = r"(?:\\{0,3}/|%2[Ff])"
_HOOK = r"(?:[A-Za-z0-9_.%@-]|\\{0,3}/)"
RULES = (
    Rule("private key", ("-----begin", "---- begin"), _BLOCK, _masked_block),
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
        ("digest ", "oauth ", "hawk ", "aws4-hmac-sha256", "signature ", "goog4-rsa-sha256"),
        rf"""
        (?P<scheme> (?i: digest | oauth | hawk | aws4-hmac-sha256 | goog4-rsa-sha256 | signature ) [ ]{{1,3}} )
        {_PARAMETERS}
        """,
        _masked_parameters,
    ),
    Rule("cookies", ("set-cookie", "cookie", "http_cookie"), _COOKIES, _masked_cookies),
    Rule(
        "password in a URL",
        ("://",),
        r"(?P<prefix> :// [^\s/?\#:@\"'<>]{0,256} : ) (?!\$\{\w+\}@) [^\s/?\#\"'<>]+ (?=@)",
        after_prefix,
    ),
    Rule(
        "password in a URL",
        ("%3a%2f%2f",),
        r"""
        (?P<prefix> (?i:%3A%2F%2F) [A-Za-z0-9_.~+-]{0,256} (?i:%3A) )
        (?: [A-Za-z0-9_.~!*'()-] | %(?!40|20|2[FfDd]|3[FfEeCc]|0[AaDd])[0-9A-Fa-f]{2} ){1,512} (?= %40 )
        """,
        after_prefix,
    ),
    Rule(
        "webhook",
        ("hooks.slack.com", "discord.com", "discordapp.com", "webhook.office.com", "hooks.zapier.com"),
        rf"""
        (?P<prefix>
            (?i:hooks\.slack\.com) {_SLASH} (?:services|workflows|triggers) {_SLASH}
            | (?i:discord(?:app)?\.com) {_SLASH} api {_SLASH} (?: v[0-9]+{_SLASH} )? webhooks {_SLASH} [0-9]+ {_SLASH}
            | (?i:webhook\.office\.com) {_SLASH} webhookb2 {_SLASH}
            | (?i:hooks\.zapier\.com) {_SLASH} hooks {_SLASH} catch {_SLASH}
        ) {_HOOK}{{12,}}""",
        after_prefix,
    ),
)
