"""How rules find secrets (a literal shows where one may begin, a pattern decides), and the rules for known forms."""

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from graphrag_eval_lc.texts import counted

MASK: Final = "***"
_MOST_PASSES = 10  # masking one secret may reveal another one, but hardly ever more than once
_MOST_SHOWN = 4
_SHOWN_SHARE = 6  # at most a sixth of a secret is shown, so less of short ones

# A token does not begin after a letter or digit, unless these end an escape such as \n, \u00e9 or %3D.
BEGINNING: Final = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2}))"
)

# After a quote: JSON continues here only if the quote ended a text, so such a quote does not begin one.
ENDS_TEXT: Final = r"(?! (?: \s | \\{1,15}[nrt] )*+ (?: [:,}\]] | \Z ) )"


class Found(NamedTuple):
    """A secret in a text, as people may see it.

    Attributes:
        kind: What it is, such as "API key or token".
        hint: Its first characters (4 at most, fewer of short secrets) and its length; this shows only its shape.
        at: The position of its first character in the text; approximate if another secret contained it.
    """

    kind: str
    hint: str
    at: int = 0


@dataclass(frozen=True)
class Rule:
    """How one kind of secret is found and masked."""

    kind: str
    # literals in lower case; the pattern is tried only at these. From the first "(" on, an anchor is a lookaround that
    # must match there too, such as (?=[0-9])
    anchors: tuple[str, ...]
    source: str  # the pattern, in verbose form; compiled when it is first needed
    # returns the replacement of a match, with the text that precedes the secret; None if the match is not a secret
    replacement: Callable[[re.Match[str]], str | None]
    offset: int = 0  # how many characters before the anchor the match begins

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.source, re.VERBOSE | re.ASCII)

    @cached_property
    def match(self) -> Callable[[str, int], re.Match[str] | None]:
        """The pattern's method ``match``, kept because looking it up takes a third of the time in hostile texts."""
        return self.pattern.match


@dataclass
class RuleSet:
    """Rules that are applied together, in one pass through a text."""

    rules: Sequence[Rule]  # if several match at the same position, the first one counts
    _by_anchor: dict[str, list[Rule]] = field(default_factory=dict, init=False)

    @cached_property
    def _anchors(self) -> re.Pattern[str]:
        """A pattern of all anchors, because one pass through a text is faster than a hundred searches."""
        tails: dict[str, str] = {}
        for literal, tail in (_parts_of(anchor) for rule in self.rules for anchor in rule.anchors):
            same = not tails.get(literal, tail) or not tail
            tails[literal] = "" if same else joined({tails.get(literal, tail): None, tail: None})
        literals = [(rule, tuple(_parts_of(anchor)[0] for anchor in rule.anchors)) for rule in self.rules]
        for literal in tails:
            self._by_anchor[literal] = [rule for rule, own in literals if literal.startswith(own)]
        return re.compile(_tree(tails))

    def masked(self, text: str, found: list[Found] | None = None) -> str:
        """Return a text with its secrets masked."""
        search = self._anchors.search
        for _ in range(_MOST_PASSES):
            lowered = text.replace("\u0130", "i").lower()  # the only character whose lower case is longer
            parts: list[str] = []
            end = 0
            hit = search(lowered)
            while hit is not None:
                after = hit.start() + 1
                for rule in self._by_anchor[hit[0]]:
                    at = hit.start() - rule.offset
                    match = rule.match(text, at) if at >= end else None
                    replaced = None if match is None else rule.replacement(match)
                    if match is None or replaced is None or replaced == match[0]:
                        continue
                    parts += text[end:at], replaced
                    end = after = match.end()
                    if found is not None:
                        found.append(Found(rule.kind, hint_of(_secret_in(match[0], replaced), match[0]), at))
                    break
                hit = search(lowered, after)
            if not parts:
                break
            text = "".join((*parts, text[end:]))
        return text


def _parts_of(anchor: str) -> tuple[str, str]:
    literal, bracket, tail = anchor.partition("(")
    return literal, bracket + tail


def _tree(tails: dict[str, str]) -> str:
    """Return a pattern that finds any of some texts, the longest if several match.

    Texts with the same beginning share a branch, so that the pattern looks at most characters of a text only once.
    """

    def branches(beginning: str, texts: Sequence[str]) -> str:
        longer = [text for text in texts if len(text) > len(beginning)]
        options = [
            re.escape(first) + branches(beginning + first, [text for text in longer if text[len(beginning)] == first])
            for first in sorted({text[len(beginning)] for text in longer})
        ]
        if beginning in tails:
            options.append(tails[beginning])
        return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"

    return branches("", sorted(tails))


def _secret_in(before: str, after: str) -> str:
    """Return the part of ``before`` that is masked in ``after``."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end]


def hint_of(secret: str, token: str = "") -> str:
    """Return the shape of a secret: its first few characters and its length."""
    shown = token if token.endswith(secret) and re.fullmatch(r"[\w.-]+", token) else secret
    beginning = shown[: min(_MOST_SHOWN, len(shown) // _SHOWN_SHARE)]
    return f"{beginning if beginning.isprintable() else ''}… ({counted(len(shown), 'character')})"


def after_prefix(match: re.Match[str]) -> str:
    """Keep the group ``prefix`` of a match, and mask the rest."""
    return f"{match['prefix']}{MASK}"


def joined(alternatives: Iterable[str]) -> str:
    """Return a pattern of alternatives."""
    return "(?:" + "|".join(alternatives) + ")"


# --- private keys: PEM in all its forms, OpenPGP and SSH; also on one line, and cut off -------------------------------

_BREAK = r"(?:\s|\\{1,15}[nrt\s]|%(?:0[AaDd9]|20))"  # YAML ends a line with a backslash if the text continues
_BASE64 = r"(?:[A-Za-z0-9+/=]|%(?:2[BbFf]|3[Dd])|\\{1,7}/)"
# Lines such as "DEK-Info: AES-256-CBC,6A0F". Encrypted keys are masked too.
_HEADER = r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash|Subject|MessageID)\s?:[^\\\n\"']{0,200})"
_CUT = r"(?:…|\.\.\.)"  # the text was shortened here
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


# --- headers of HTTP: Bearer and Basic, Digest and other schemes with parameters, cookies -----------------------------

_CREDENTIAL = r"(?:[A-Za-z0-9._~+/=|-]|\\{1,3}/)"
# A quote that ends a text, inside of another text that ends with it.
_ENDS_BOTH = rf"""(?! \\{{0,7}}" {ENDS_TEXT.replace("(?!", "(?=", 1)} )"""
# The closing quote of a text has as many backslashes as the opening one; it may be cut off.
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


# --- addresses: passwords before the host, webhooks whose address is the secret ---------------------------------------

_SLASH = r"(?:\\{0,3}/|%2[Ff])"
_HOOK = r"(?:[A-Za-z0-9_.%@-]|\\{0,3}/)"
FORM_RULES = (
    Rule(
        "private key",
        ("-----begin", "---- begin"),
        _BLOCK,
        lambda found: found["begin"] + MASK + (found["end"] or "") if _HAS_KEY.search(found["body"]) else None,
    ),
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
        lambda found: found["scheme"] + MASK if _PROOF.search(found["parameters"]) else None,
    ),
    Rule(
        "cookies",
        ("set-cookie", "cookie", "http_cookie"),
        _COOKIES,
        lambda found: found["name"] + found["separator"] + MASK,
    ),
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


_KIND = "API key or token"
_END = "(?![A-Za-z0-9_-])"


def _rule(prefixes: str, body: str, *, before: str = "", length: int = 0) -> Rule:
    """Return the rule for tokens of one form."""
    found = prefixes.split()
    any_prefix = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    source = rf"{BEGINNING}{before}(?P<prefix>{any_prefix})(?:{body}){_END}"
    return Rule(_KIND, tuple(prefix.lower() for prefix in found), source, after_prefix, length)


_FORMS = (
    # Models, vectors, tracing, code, clouds, payment, mail, messages, teams: letters and digits.
    _rule(
        "gsk_ hf_ api_org_ xai- pplx- r8_ fw_ csk- llx- napi_ phx_ hcaik_ hcbik_ hcxik_ ghp_ gho_ ghu_ ghr_ npm_ "
        "rubygems_ sqp_ squ_ sqa_ bkua_ pul- AKCp dop_v1_ doo_v1_ dor_v1_ dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. "
        "nfp_ shpat_ shpss_ shpca_ shppa_ ATBB lin_api_ lin_oauth_ ntn_ e2b_",
        "[A-Za-z0-9]{20,}",
    ),
    # The same with other characters; these need a digit, because otherwise they may be words.
    _rule(
        "nvapi- tvly- tgp_v1_ jina_ pcsk_ sbp_ pscale_tkn_ pscale_pw_ pscale_oauth_ lsv2_pt_ lsv2_sk_ ls__ "
        "glc_ glsa_ sntrys_ sntryu_ ghs_ github_pat_ gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- "
        "gloas- glffct- glwt- pypi-Ag dckr_oat_ sgp_ CCIPAT_ CCIPRJ_ hvs. "
        "hvb. hvr. ops_eyJ tskey- fo1_ fm1_ fm2_ HRKU- sha256~ whsec_ sq0atp- sq0csp- xkeysib- xsmtpsib- ATATT3 ATCTT3 "
        "figo_ PMAK- NRAK- NRJS- NRII- dt0c01. dt0s01. tfp_",
        r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}(?:[A-Za-z0-9_.+/~-]*[A-Za-z0-9])?={0,2}",
    ),
    # One in a hundred of these has no digit.
    _rule("AIza ya29. GOCSPX- 1//0 sb_secret_ dckr_pat_ figd_", "[A-Za-z0-9_.-]{23,}[A-Za-z0-9_-]"),
    _rule("glpat-", "[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-]"),
    _rule("sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_", "[A-Za-z0-9]{10,}"),
    _rule("sk_", "[0-9a-f]{40,}"),
    _rule("dapi dose dkea", "[0-9a-f]{32}(?:-[0-9]{1,2})?"),
    _rule("key- fc-", "[0-9a-f]{32}"),
    _rule("AKIA ASIA ABIA ACCA", "[A-Z0-9]{16}"),
    _rule("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _rule("pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{60,}"),
    _rule("secret_", "(?=[A-Za-z]*[0-9])[A-Za-z0-9]{43}"),
    _rule("xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xox xapp-", "(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{10,}"),
    _rule("Q~", "[A-Za-z0-9_~.-]{30,}", before="[A-Za-z0-9_~.-]{3}[0-9]", length=4),  # Azure
    _rule("JQQJ99", "[A-Za-z0-9]{20,}={0,2}", before="[A-Za-z0-9]{52}", length=52),  # Azure
    _rule("AZDO", "[A-Za-z0-9]{4}", before="[A-Za-z0-9]{76}", length=76),  # Azure DevOps
    _rule("-us", "[0-9]{1,2}", before="[0-9a-f]{32}", length=32),  # Mailchimp
    _rule(".atlasv1.", "[A-Za-z0-9_=-]{40,}", before="[A-Za-z0-9]{14}", length=14),  # Terraform
)

# --- keys that begin with sk- ----------------------------------------------------------------------------------------

_KNOWN_PREFIX = re.compile(r"(?:proj|svcacct|admin|lf|or-v1|ant-[a-z]+[0-9]+)-[A-Za-z0-9_-]{16,}")
_RUN = re.compile(r"[A-Za-z0-9]{10,}")


def _masked_sk(match: re.Match[str]) -> str | None:
    """Mask a key, but not words with hyphens: a key has a known beginning, or a part that is not a word."""
    is_key = _KNOWN_PREFIX.fullmatch(match["body"]) is not None or any(
        len(run) >= 24 or (any(map(str.isdigit, run)) and (len(run) >= 16 or any(map(str.isupper, run))))
        for run in _RUN.findall(match["body"])
    )
    return f"{match['prefix']}{MASK}" if is_key else None


# --- tokens with another form ----------------------------------------------------------------------------------------

_HEX_TAIL = f"[0-9a-f]{{32}}{_END}"
# A Discord token begins with the account's number in base64, and the number with a digit from 1 to 9.
_DISCORD = tuple(f"{two}(?=[a-z0-9_-]{{21,26}}[.])" for two in ("mt", "mj", "mz", "nd", "nt", "nj", "nz", "od", "ot"))
TOKEN_RULES = (
    *_FORMS,
    Rule(_KIND, ("sk-",), rf"{BEGINNING}(?P<prefix>sk-)(?P<body>[A-Za-z0-9_-]{{10,}}+)", _masked_sk),
    Rule(
        "JSON Web Token",
        ("eyj",),
        rf"""{BEGINNING}(?P<prefix>eyJ)[A-Za-z0-9_-]{{8,}}+
        (?: \.eyJ[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+ | (?:\.[A-Za-z0-9_-]*+){{3}}\.[A-Za-z0-9_-]{{8,}}+ )""",
        after_prefix,
    ),
    Rule(_KIND, ("sk(?=[0-9a-f]{32})",), rf"{BEGINNING}(?P<prefix>SK){_HEX_TAIL}", after_prefix),  # Twilio
    Rule(
        _KIND,
        ("ac(?=[0-9a-f]{32})",),
        rf"{BEGINNING}(?P<prefix>AC[0-9a-f]{{32}}(?![0-9a-zA-Z])[^\n]{{1,80}}?{BEGINNING}){_HEX_TAIL}",
        after_prefix,
    ),
    Rule(_KIND, ("age-secret-key-1",), r"(?P<prefix>(?i:AGE-SECRET-KEY-1))[A-Za-z0-9]{40,}", after_prefix),
    Rule(
        "Telegram token",
        (":aa", "%3aaa"),
        rf"(?<=[0-9]{{6}})(?P<prefix>(?::|%3[Aa])AA)[A-Za-z0-9_-]{{30,}}{_END}",
        after_prefix,
    ),
    Rule(
        "Discord token",
        _DISCORD,
        rf"{BEGINNING}[MNO][A-Za-z0-9_-]{{22,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}{_END}",
        lambda _: MASK,
    ),
)
