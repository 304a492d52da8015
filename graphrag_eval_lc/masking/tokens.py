"""Tokens and keys that are known by their beginning, and some by a fixed part inside."""

import re

from graphrag_eval_lc.masking.rules import BEGINNING, MASK, Rule, after_prefix, masked_all

_KIND = "API key or token"
_END = "(?![A-Za-z0-9_-])"


def _rule(prefixes: str, body: str, *, before: str = "", length: int = 0) -> Rule:
    """Return the rule for tokens of one form.

    Args:
        prefixes: The beginnings, between spaces; they stay in the masked text.
        body: A pattern of all that follows. Lengths are somewhat below those in use, since providers change them.
        before: A pattern of what precedes the prefix, if that is not the beginning; it is masked too.
        length: The number of characters of ``before``.
    """
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
    # The same with other signs; without a digit it may be words.
    _rule(
        "nvapi- tvly- tgp_v1_ jina_ pcsk_ sbp_ pscale_tkn_ pscale_pw_ pscale_oauth_ lsv2_pt_ lsv2_sk_ ls__ "
        "glc_ glsa_ sntrys_ sntryu_ ghs_ github_pat_ gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- "
        "gloas- glffct- glwt- pypi-Ag dckr_oat_ sgp_ CCIPAT_ CCIPRJ_ hvs. "
        "hvb. hvr. ops_eyJ tskey- fo1_ fm1_ fm2_ HRKU- sha256~ whsec_ sq0atp- sq0csp- xkeysib- xsmtpsib- ATATT3 ATCTT3 "
        "figo_ PMAK- NRAK- NRJS- NRII- dt0c01. dt0s01. tfp_",
        r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}(?:[A-Za-z0-9_.+/~-]*[A-Za-z0-9])?={0,2}",
    ),
    # Of these some have no digit: one in a hundred.
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
    return f"{match['prefix']}{MASK}" if _is_key_after_sk(match["body"]) else None


def _is_key_after_sk(body: str) -> bool:
    """Tell a key from words with hyphens: by a known beginning, or by a run of characters that is not a word."""
    return _KNOWN_PREFIX.fullmatch(body) is not None or any(map(_is_no_word, _RUN.findall(body)))


def _is_no_word(run: str) -> bool:
    return len(run) >= 24 or (any(map(str.isdigit, run)) and (len(run) >= 16 or any(map(str.isupper, run))))


# --- tokens with another form ----------------------------------------------------------------------------------------

_HEX_TAIL = f"[0-9a-f]{{32}}{_END}"
# A Discord token begins with the account's number in base64: it begins with a digit from 1 to 9.
_DISCORD = tuple(f"{two}(?=[a-z0-9_-]{{21,26}}[.])" for two in ("mt", "mj", "mz", "nd", "nt", "nj", "nz", "od", "ot"))
RULES = (
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
        masked_all,
    ),
)
