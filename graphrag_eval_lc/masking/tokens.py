"""Tokens and keys that their providers give a beginning of their own, and some that a fixed part inside tells."""

import re
from typing import NamedTuple

from graphrag_eval_lc.masking.rules import BEGINNING, MASK, Rule, after_prefix, masked_all


class _Token(NamedTuple):
    """Tokens of one form.

    Attributes:
        kind: What people call it.
        prefixes: The beginnings, which stay in the masked text.
        body: A pattern of all that follows. Lengths are somewhat below those in use, since providers change them.
        before: A pattern of what precedes the prefix, if that is not the beginning; it is masked too.
        length: The number of characters of ``before``.
    """

    kind: str
    prefixes: tuple[str, ...]
    body: str
    before: str = ""
    length: int = 0


_LETTERS = "[A-Za-z0-9]{20,}"
_DASHES = "[A-Za-z0-9_-]{20,}"
_WITH_DIGIT = "(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"
_HEX32 = "[0-9a-f]{32,}"
_HEX40 = "[0-9a-f]{40,}"
_UUID = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

_TOKENS = (
    # models
    _Token("Groq key", ("gsk_",), _LETTERS),
    _Token("Hugging Face token", ("hf_", "api_org_"), _LETTERS),
    _Token("xAI key", ("xai-",), _LETTERS),
    _Token("Perplexity key", ("pplx-",), _LETTERS),
    _Token("NVIDIA key", ("nvapi-",), _DASHES),
    _Token("Tavily key", ("tvly-",), _WITH_DIGIT),
    _Token("Replicate token", ("r8_",), "[A-Za-z0-9]{30,}"),
    _Token("Fireworks key", ("fw_",), _LETTERS),
    _Token("Together key", ("tgp_v1_",), _DASHES),
    _Token("Cerebras key", ("csk-",), _LETTERS),
    _Token("LlamaCloud key", ("llx-",), _LETTERS),
    _Token("Jina key", ("jina_",), _DASHES),
    _Token("Voyage key", ("pa-",), "(?=[A-Za-z_-]*[0-9])(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{40,}"),
    _Token("Firecrawl key", ("fc-",), "[0-9a-f]{32}"),
    _Token("E2B key", ("e2b_",), _HEX40),
    _Token("ElevenLabs key", ("sk_",), "[0-9a-f]{40,}"),
    # knowledge, vectors, data
    _Token("Pinecone key", ("pcsk_",), "[A-Za-z0-9_]{30,}"),
    _Token("Databricks token", ("dapi", "dose", "dkea"), "[0-9a-f]{32}(?:-[0-9]{1,2})?"),
    _Token("Supabase key", ("sbp_", "sb_secret_"), _DASHES),
    _Token("Neon key", ("napi_",), "[A-Za-z0-9]{40,}"),
    _Token("PlanetScale token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), "[A-Za-z0-9_.=-]{30,}"),
    _Token("Airtable token", ("pat",), r"[A-Za-z0-9]{14}\.[0-9a-f]{60,}"),
    # tracing and monitoring
    _Token("LangSmith key", ("lsv2_",), "(?:pt|sk)_[0-9a-f]{20,}(?:_[0-9a-f]+)?"),
    _Token("LangSmith key", ("ls__",), "[0-9a-f]{32}"),
    _Token("Grafana token", ("glc_", "glsa_"), "[A-Za-z0-9_+/=]{30,}"),
    _Token("New Relic key", ("NRAK-", "NRJS-", "NRII-"), "[A-Za-z0-9_-]{19,}"),
    _Token("Sentry token", ("sntrys_", "sntryu_"), "[A-Za-z0-9+/_=]{40,}"),
    _Token("PostHog key", ("phx_",), _LETTERS),
    _Token("Honeycomb key", ("hcaik_", "hcbik_", "hcxik_"), "[A-Za-z0-9]{30,}"),
    _Token("Dynatrace token", ("dt0c01.", "dt0s01."), r"[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    # code and packages
    _Token("GitHub token", ("ghp_", "gho_", "ghu_", "ghr_"), _LETTERS),
    _Token("GitHub token", ("ghs_",), r"[A-Za-z0-9]{20,}|[A-Za-z0-9]{1,12}_eyJ[A-Za-z0-9_.-]{20,}"),
    _Token("GitHub token", ("github_pat_",), _DASHES),
    _Token("GitLab token", ("glpat-",), r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?"),
    _Token(
        "GitLab token",
        (
            *("gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "gloas-"),
            *("glffct-", "glwt-"),
        ),
        r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    _Token("npm token", ("npm_",), "[A-Za-z0-9]{30,}"),
    _Token("PyPI token", ("pypi-",), "Ag[A-Za-z0-9_-]{40,}"),
    _Token("RubyGems key", ("rubygems_",), _HEX40),
    _Token("crates.io token", ("cio",), "(?=[A-Za-z]*[0-9])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{32}"),
    _Token("NuGet key", ("oy2",), "(?=[a-z]*[0-9])[a-z0-9]{43}"),
    _Token("Docker token", ("dckr_pat_", "dckr_oat_"), _DASHES),
    _Token("Sourcegraph token", ("sgp_",), "(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    _Token("SonarQube token", ("sqp_", "squ_", "sqa_"), _HEX40),
    _Token("CircleCI token", ("CCIPAT_", "CCIPRJ_"), "[A-Za-z0-9_]{30,}"),
    _Token("Buildkite token", ("bkua_",), _HEX40),
    _Token("Pulumi token", ("pul-",), _HEX40),
    _Token("JFrog key", ("AKCp",), "[A-Za-z0-9]{60,}"),
    # clouds
    _Token("Google API key", ("AIza",), "[A-Za-z0-9_-]{30,}"),
    _Token("Google OAuth token", ("ya29.",), "[A-Za-z0-9_.-]{20,}"),
    _Token("Google OAuth secret", ("GOCSPX-",), "[A-Za-z0-9_-]{20,}"),
    _Token("Google refresh token", ("1//0",), "[A-Za-z0-9_-]{30,}"),
    _Token("AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), "[A-Z0-9]{16}"),
    _Token("Alibaba access key", ("LTAI",), "(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16,26}"),
    _Token("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), _HEX40),
    _Token("Vault token", ("hvs.", "hvb.", "hvr."), _DASHES),
    _Token("Doppler token", ("dp.pt.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), "[A-Za-z0-9]{30,}"),
    _Token("Doppler token", ("dp.st.",), "(?:[a-z0-9_-]{2,35}[.])?[A-Za-z0-9]{30,}"),
    _Token("1Password token", ("ops_eyJ",), "[A-Za-z0-9+/=_-]{40,}"),
    _Token("Tailscale key", ("tskey-",), "[a-z]+-[A-Za-z0-9-]{16,}"),
    _Token("Fly.io token", ("fo1_",), "[A-Za-z0-9_-]{40,}"),
    _Token("Netlify token", ("nfp_",), "[A-Za-z0-9]{30,}"),
    _Token("Heroku key", ("HRKU-",), "[A-Za-z0-9_-]{36,}"),
    _Token("OpenShift token", ("sha256~",), "[A-Za-z0-9_-]{40,}"),
    # payment, mail, messages
    _Token("Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_"), "[A-Za-z0-9]{10,}"),
    _Token("webhook secret", ("whsec_",), "[A-Za-z0-9+/]{20,}={0,2}"),
    _Token("Square token", ("sq0atp-", "sq0csp-"), _DASHES),
    _Token("Facebook or Square token", ("EAA",), "(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{57,}"),
    _Token("Shopify token", ("shpat_", "shpss_", "shpca_", "shppa_"), "[0-9a-fA-F]{32}"),
    _Token("SendGrid key", ("SG.",), r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _Token("Mailgun key", ("key-",), "[0-9a-f]{32}"),
    _Token("Brevo key", ("xkeysib-", "xsmtpsib-"), "[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _Token("Slack token", tuple(f"xox{kind}-" for kind in "abeoprs"), "(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{10,}"),
    _Token("Slack token", ("xoxe.xox",), "[bp]-(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{20,}"),
    _Token("Slack token", ("xapp-",), "[0-9]-[A-Z0-9]+-[0-9]+-[A-Za-z0-9]{20,}"),
    _Token("Discord token", ("mfa.",), "[A-Za-z0-9_-]{80,}"),
    # tools of teams
    _Token("Atlassian token", ("ATATT3", "ATCTT3"), "[A-Za-z0-9_=-]{40,}"),
    _Token("Bitbucket password", ("ATBB",), "[A-Za-z0-9]{30,}"),
    _Token("Linear key", ("lin_api_", "lin_oauth_"), "[A-Za-z0-9]{32,}"),
    _Token("Notion token", ("ntn_",), "[A-Za-z0-9]{40,}"),
    _Token("Notion token", ("secret_",), "(?=[A-Za-z]*[0-9])[A-Za-z0-9]{43}"),
    _Token("Figma token", ("figd_", "figo_"), "[A-Za-z0-9_-]{30,}"),
    _Token("Postman key", ("PMAK-",), "[0-9a-f]{24}-[0-9a-f]{34}"),
    _Token("Dropbox token", ("sl.",), "[A-Za-z0-9_-]{80,}"),
    _Token("Typeform token", ("tfp_",), "[A-Za-z0-9_.-]{40,}"),
    _Token("LaunchDarkly key", ("sdk-",), _UUID),
    # another sign than the beginning
    _Token("Azure client secret", ("Q~",), "[A-Za-z0-9_~.-]{30,}", "[A-Za-z0-9_~.-]{3}[0-9]", 4),
    _Token("Azure key", ("JQQJ99",), "[A-Za-z0-9]{20,}={0,2}", "[A-Za-z0-9]{52}", 52),
    _Token("Azure DevOps token", ("AZDO",), "[A-Za-z0-9]{4}", "[A-Za-z0-9]{76}", 76),
    _Token("Mailchimp key", ("-us",), "[0-9]{1,2}", "[0-9a-f]{32}", 32),
    _Token("Terraform token", (".atlasv1.",), "[A-Za-z0-9_=-]{40,}", "[A-Za-z0-9]{14}", 14),
    _Token("Fly.io token", ("fm1_", "fm2_"), "[A-Za-z0-9+/_-]{60,}={0,2}"),
)


def _rule_of(token: _Token) -> Rule:
    prefixes = "|".join(map(re.escape, token.prefixes))
    return Rule(
        token.kind,
        tuple(prefix.lower() for prefix in token.prefixes),
        rf"{BEGINNING}{token.before}(?P<prefix>{prefixes})(?:{token.body})(?![A-Za-z0-9_-])",
        after_prefix,
        token.length,
    )


# --- keys that begin with sk- ----------------------------------------------------------------------------------------

_KNOWN_PREFIX = re.compile(r"(?:proj|svcacct|admin|lf|or-v1|ant-[a-z]+[0-9]+)-[A-Za-z0-9_-]{16,}")
_RUN = re.compile(r"[A-Za-z0-9]{10,}")


def _masked_sk(match: re.Match[str]) -> str | None:
    return f"{match['prefix']}{MASK}" if _is_key_after_sk(match["body"]) else None


def _is_key_after_sk(body: str) -> bool:
    """Tell a key from words with hyphens: by a known beginning, or by a run of characters that is no word."""
    return _KNOWN_PREFIX.fullmatch(body) is not None or any(map(_is_no_word, _RUN.findall(body)))


def _is_no_word(run: str) -> bool:
    return len(run) >= 24 or (any(map(str.isdigit, run)) and (len(run) >= 16 or any(map(str.isupper, run))))


# --- tokens with another form ----------------------------------------------------------------------------------------

_AFTER = "(?![A-Za-z0-9_-])"
_JWT = rf"{BEGINNING}(?P<prefix>eyJ)[A-Za-z0-9_-]{{8,}}+"
_HEX_TAIL = f"[0-9a-f]{{32}}{_AFTER}"
# A Discord token begins with the account's number in base64: it begins with a digit from 1 to 9.
_DISCORD = tuple(f"{two}(?=[a-z0-9_-]{{21,26}}[.])" for two in ("mt", "mj", "mz", "nd", "nt", "nj", "nz", "od", "ot"))
RULES = (
    *map(_rule_of, _TOKENS),
    Rule("API key (sk-…)", ("sk-",), rf"{BEGINNING}(?P<prefix>sk-)(?P<body>[A-Za-z0-9_-]{{10,}}+)", _masked_sk),
    Rule("JSON Web Token", ("eyj",), rf"{_JWT}\.eyJ[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+", after_prefix),
    Rule(
        "encrypted JSON Web Token",
        ("eyj",),
        rf"{_JWT}(?:\.[A-Za-z0-9_-]*+){{3}}\.[A-Za-z0-9_-]{{8,}}+",
        after_prefix,
    ),
    Rule(
        "Mapbox token",
        ("sk.eyj",),
        rf"{BEGINNING}(?P<prefix>sk\.)eyJ[A-Za-z0-9_-]{{20,}}\.[A-Za-z0-9_-]{{10,}}",
        after_prefix,
    ),
    Rule("Twilio key", ("sk(?=[0-9a-f]{32})",), rf"{BEGINNING}(?P<prefix>SK){_HEX_TAIL}", after_prefix),
    Rule(
        "Twilio auth token",
        ("ac(?=[0-9a-f]{32})",),
        rf"{BEGINNING}(?P<prefix>AC[0-9a-f]{{32}}(?![0-9a-zA-Z])[^\n]{{1,80}}?{BEGINNING}){_HEX_TAIL}",
        after_prefix,
    ),
    Rule("age key", ("age-secret-key-1",), r"(?P<prefix>(?i:AGE-SECRET-KEY-1))[A-Za-z0-9]{40,}", after_prefix),
    Rule(
        "Telegram token",
        (":aa", "%3aaa"),
        rf"(?<=[0-9]{{6}})(?P<prefix>(?::|%3[Aa])AA)[A-Za-z0-9_-]{{30,}}{_AFTER}",
        after_prefix,
    ),
    Rule(
        "Discord token",
        _DISCORD,
        rf"{BEGINNING}[MNO][A-Za-z0-9_-]{{22,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}{_AFTER}",
        masked_all,
    ),
)
