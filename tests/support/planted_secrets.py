"""Made-up secrets as they leak into errors, and harmless text that looks like them.

They are assembled from parts so that repository scanners do not report this file as a leak.
"""

import base64
import json
import random
import string
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import yaml

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE64 = _LETTERS + "+/"


class Planted(NamedTuple):
    """A secret inside the text in which it usually appears.

    Attributes:
        name: What it is.
        text: The text.
        parts: Strings that must not be left anywhere after masking.
    """

    name: str
    text: str
    parts: tuple[str, ...]


def _made(name: str, length: int, alphabet: str = _LETTERS) -> str:
    """Return characters that look random but are the same in each process."""
    choose = random.Random(f"{name} {length}")
    while True:
        text = "".join(choose.choices(alphabet, k=length))
        if any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
            return text


def _token(name: str, before: str, length: int, alphabet: str = _LETTERS, after: str = "") -> Planted:
    body = _made(name, length, alphabet) + after
    return Planted(name, before + body, (body,))


def _named(name: str, before: str, length: int, alphabet: str = _LETTERS, after: str = "") -> Planted:
    body = _made(name, length, alphabet)
    return Planted(name, before + body + after, (body,))


def _pem(kind: str, *, newline: str = "\n", is_cut: bool = False, header: str = "") -> Planted:
    name = f"PEM {kind} {newline!r}{' cut' if is_cut else ''}{' with header' if header else ''}"
    lines = [_made(f"{name} {number}", 64, _BASE64) for number in range(4)] + [_made(name, 22, _BASE64) + "=="]
    begin, end = f"-----BEGIN {kind}-----", f"-----END {kind}-----"
    body = [*([header, ""] if header else []), *lines]
    text = newline.join([begin, *body[:-2]]) if is_cut else newline.join([begin, *body, end, ""])
    return Planted(name, text, tuple(lines[:2] if is_cut else lines))


_BASIC = base64.b64encode(b"kg:graph-pa55word").decode()
_BODY = base64.urlsafe_b64encode(json.dumps({"sub": "1234567890"}).encode()).decode().rstrip("=")
_JWT = f"eyJhbGciOiJIUzI1NiJ9.{_BODY}.{_made('jwt', 43)}"

# The reported formats, and common neighbours in agent configs.
SECRETS = (
    _pem("RSA PRIVATE KEY"),
    _pem("PRIVATE KEY", newline="\\n"),
    _pem("EC PRIVATE KEY", newline=" "),
    _pem("OPENSSH PRIVATE KEY", is_cut=True),
    _pem("ENCRYPTED PRIVATE KEY", newline="\r\n"),
    _pem("PGP PRIVATE KEY BLOCK", header="Version: GnuPG v2"),
    _pem("RSA PRIVATE KEY", header="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,6A0F2B9C"),
    Planted(
        "Azure SAS",
        f"https://kg.blob.core.windows.net/c/f.ttl?sv=2022-11-02&sp=r&sig={quote(_made('sas', 43, _BASE64), '')}%3D",
        (quote(_made("sas", 43, _BASE64), ""),),
    ),
    _named(
        "Azure connection string",
        "DefaultEndpointsProtocol=https;AccountName=kg;AccountKey=",
        86,
        _BASE64,
        "==;EndpointSuffix=core.windows.net",
    ),
    _named("Azure service bus", "SharedAccessKeyName=Root;SharedAccessKey=", 43, _BASE64, "=;EntityPath=q"),
    _named("Azure SAS token", "SharedAccessSignature sr=kg.example&sig=", 43, _BASE64, "=&se=1700000000&skn=p"),
    _named("Cookie", "Cookie: theme=dark; session=", 26),
    _named("Set-Cookie", "Set-Cookie: sid=", 24, after="; Path=/; HttpOnly; Secure"),
    _named(
        "Digest",
        'Authorization: Digest username="kg", realm="graph", nonce="dcd98b7102dd", uri="/sparql", response="',
        32,
        _HEX,
        '"',
    ),
    _token("Google OAuth token", "ya29.a0", 60),
    _token("Google API key", "AIza", 35, _LETTERS + "-_"),
    _token("Google OAuth secret", "GOCSPX-", 28),
    _named("AWS signature", "https://b.s3.amazonaws.com/f?X-Amz-Expires=900&X-Amz-Signature=", 64, _HEX, "&x=1"),
    _named("AWS session", "https://b.s3.amazonaws.com/f?X-Amz-Security-Token=", 120, after="&x=1"),
    _named("Google signature", "https://storage.googleapis.com/b/f?X-Goog-Signature=", 512, _HEX, "&x=1"),
    _named("AWS secret key", "aws_secret_access_key = ", 40, _BASE64),
    _token("AWS access key", "AKIA", 16, string.ascii_uppercase + "234567"),
    _token("Stripe secret key", "sk_live_", 24),
    _token("Stripe restricted key", "rk_live_", 24),
    _token("webhook secret", "whsec_", 32),
    _token("npm token", "npm_", 36),
    _token("PyPI token", "pypi-AgEIcHlwaS5vcmc", 120, _LETTERS + "-_"),
    _token("Vault service token", "hvs.", 90, _LETTERS + "-_"),
    _token("Vault batch token", "hvb.", 120, _LETTERS + "-_"),
    _token("Databricks token", "dapi", 32, _HEX),
    _token("DigitalOcean token", "dop_v1_", 64, _HEX),
    _token("DigitalOcean OAuth token", "doo_v1_", 64, _HEX),
    _token("SendGrid key", f"SG.{_made('sg', 22)}.", 43, _LETTERS + "-_"),
    _token("Pinecone key", "pcsk_4xJ2q_", 63),
    _token("Twilio key", "SK", 32, _HEX),
    _named("Twilio auth token", f"AC{_made('ac', 32, _HEX)}:", 32, _HEX),
    _named("Cohere key by name", "CO_API_KEY=", 40),
    _named("Cohere key in words", "cohere refused the api token ", 40),
    _token("OpenAI key", "sk-proj-", 120, _LETTERS + "-_"),
    _token("Anthropic key", "sk-ant-api03-", 93, _LETTERS + "-_", "AA"),
    _token("GitHub token", "ghp_", 36),
    _token("GitHub fine-grained token", f"github_pat_{_made('pat', 22)}_", 59),
    _token("GitLab token", "glpat-", 20),
    Planted("JSON Web Token", _JWT, (_JWT[24:],)),
    Planted("Basic", f"Authorization: Basic {_BASIC}", (_BASIC,)),
    _named("Bearer", "Authorization: Bearer ", 40),
)

MORE_SECRETS = (
    _pem("DSA PRIVATE KEY", newline="\\\\n"),
    _named("Mistral key", "MISTRAL_API_KEY: ", 32),
    _named("Neo4j URL", "neo4j+s://neo4j:", 20, after="@kg.databases.neo4j.io"),
    _named("GraphDB URL", "http://admin:", 12, after="@localhost:7200/repositories/kg"),
    _named("JDBC", "jdbc:sqlserver://h:1433;databaseName=kg;user=sa;password=", 14, after=";encrypt=true"),
    _named("ODBC", "Driver={SQL Server};Server=h;Uid=sa;Pwd=", 14, after=";"),
    _token("age key", "AGE-SECRET-KEY-1", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    _named("Fernet key", "FERNET_KEY=", 43, _LETTERS + "-_", "="),
    _named("Slack webhook", "https://hooks.slack.com/services/T01ABCDEF/B01ABCDEF/", 24),
    _named("Discord webhook", "https://discord.com/api/webhooks/123456789012345678/", 68, _LETTERS + "-_"),
    _named("Slack bot token", "xoxb-123456789012-1234567890123-", 24),
    _token("Atlassian token", "ATATT3xFfGF0", 180, _LETTERS + "-_"),
    _named("Telegram token", "https://api.telegram.org/bot123456789:AA", 33, after="/getMe"),
    _token("Mailgun key", "key-", 32, _HEX),
    Planted(
        "Langfuse key",
        "sk-lf-3f1c9a52-7b1e-4c55-9a60-0f2b6f1d8e77",
        ("3f1c9a52-7b1e-4c55-9a60-0f2b6f1d8e77",),
    ),
    _token("LangSmith key", "lsv2_pt_", 32, _HEX, "_0123456789"),
    _token("Groq key", "gsk_", 52),
    _token("Hugging Face token", "hf_", 34),
    _token("GitLab deploy token", "gldt-", 20),
    _named("Discord bot token", f"MTA{_made('discord', 21)}.Gx1aBc.", 38, _LETTERS + "-_"),
    _token("Azure client secret", "abc8Q~", 34),
    _token("Shopify token", "shpat_", 32, _HEX),
    _token("New Relic key", "NRAK-", 27, string.ascii_uppercase + string.digits),
    _token("Grafana token", "glsa_", 32, _LETTERS, "_0a1b2c3d"),
    _token("Docker token", "dckr_pat_", 27),
    _token("Doppler token", "dp.pt.", 43),
    _token("Terraform token", f"{_made('tf', 14)}.atlasv1.", 67),
    _named("Azure key", _made("azure", 52) + "JQQJ99", 26),
    _named("Azure DevOps token", _made("azdo", 76) + "AZDO", 4),
    _named("Mailchimp key", "", 32, _HEX, "-us17"),
    _token("Fly.io token", "fm2_", 90),
    _token("Twilio key", "SK", 32, _HEX),
    _token("Postman key", f"PMAK-{_made('pm', 24, _HEX)}-", 34, _HEX),
    _token("RubyGems key", "rubygems_", 48, _HEX),
    _token("Replicate token", "r8_", 37),
    _named("session in a query", "https://kg.example/sparql?limit=10&session=", 32),
    _named(
        "AWS4 request",
        "AWS4-HMAC-SHA256 Credential=AKID/20261123/eu/s3/aws4_request, SignedHeaders=host, Signature=",
        64,
        _HEX,
    ),
    _named("OAuth 1", 'OAuth oauth_consumer_key="kg", oauth_token="kg-1", oauth_signature="', 27, _LETTERS, '%3D"'),
)


def embeddings(text: str) -> Iterator[tuple[str, str]]:
    """Yield each form in which a text can be embedded in an error, as name and error."""
    yield "bare", f"the endpoint refused {text}"
    yield "in a sentence", f"RuntimeError: refused ({text}), try again"
    yield "JSON", json.dumps({"error": {"message": f"refused: {text}", "code": 401}})
    yield "JSON value", json.dumps([{"given": text, "n": 1}])
    yield "JSON in JSON", json.dumps({"body": json.dumps({"given": text, "n": 1})})
    yield "header", f"GET /sparql HTTP/1.1\r\nX-Given: {text}\r\nHost: kg.example\r\n"
    yield "Python", repr({"given": text, "n": 1})
    yield "Python exception", repr(RuntimeError(f"refused {text}", 401))
    yield "YAML", yaml.safe_dump({"given": text, "n": 1})
    yield "YAML block", yaml.safe_dump({"given": text + "\nmore\n"}, default_style="|", width=200)
    yield "log line", f"2026-11-23T10:00:00Z ERROR kg.client - {text}"
    if not set(text) & set(' \n\\"'):
        yield "URL", f"https://kg.example/sparql?v={text}&limit=10"
        yield "encoded URL", f"https://kg.example/sparql?v={quote(text, safe='')}&limit=10"


def leaks(planted: Planted, text: str) -> list[str]:
    """Return the parts of a secret that occur in a text, including percent-encoded and JSON-escaped forms."""
    return [
        part for part in planted.parts if any(form in text for form in (part, quote(part, ""), json.dumps(part)[1:-1]))
    ]


_UUID = "f1769670-9aeb-11e5-91da-b8763fd99c5f"
_SHA1 = "bfa4dda0c1a2f3e4d5b6978812ab34cd56ef7890"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

LOOK_ALIKES = (
    "https://transformation.eu/resource/Substation_OSLO2_220kV",
    "http://ex.org/id/sk-bratislava-region-2021-report",
    f"urn:uuid:{_UUID}",
    f"http://ucaiug.org/ns#_{_UUID}",
    f"mRID: _{_UUID}",
    f"session_id={_UUID}",
    f"key={_UUID}",
    f"commit {_SHA1}",
    f"cache_key={_SHA256}",
    f"sha256:{_SHA256}",
    f'{{"digest": "{_SHA256}", "key": "q1"}}',
    "md5 9e107d9d372bb6826bd81d3542a419d6",
    "EIC 10YAT-APG------L, code=10YAT-APG------L",
    "key: substation-graz-220kV-line-17",
    '{"key": "http://example.org/ontology#hasVoltageLevel"}',
    "PREFIX token: <http://ex.org/token#> SELECT ?key ?sig { ?x token:key ?key ; token:sig ?sig }",
    "SELECT ?secret WHERE { ?s ex:password ?secret . FILTER(?token = 5) }",
    "SELECT * { ?s ex:token ?token FILTER(?token = 'x12' || ?apiToken = ?other || ?secret='x') }",
    'ASK { ?s ex:pwd ?pwd FILTER($pwd = "a" && ?pwd = 5) }',
    "MATCH (n:Key {token: 'abc12345', secret: $secret}) WHERE n.password = 'x' AND n.accessToken = $token RETURN n",
    "MATCH (a:Key {session: $session})-[:AUTH]->(b) RETURN a.key, b.token LIMIT 10",
    '{"head": {"vars": ["token"]}, "results": {"bindings": [{"token": {"type": "literal", "value": "abc"}}]}}',
    '{"head": {"vars": ["password"]}, "results": {"bindings": [{"password": {"type": "uri", "value": "urn:a:x"}}]}}',
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCoz\n-----END PUBLIC KEY-----",
    "a file that has -----BEGIN PRIVATE KEY----- in it, and no key",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SaG6UOoqKLsabgH5C9okWi0dsl8k",
    "npm_config_registry, sk_live_key, hvs.example, SG.x, dapi.example.org, pypi-server, key-value, ya29.x",
    "Unexpected token: 'SELECT'; unexpected token: ex:hasName2",
    "max_tokens: 4096, total_tokens=123456, prompt_tokens=17",
    "the cookie: a small text; the session: 12 to 14; auth: none; pass: 17 of 20",
    "Digest of the run, Basic graph pattern, a bearer of news, OAuth is not used",
    "api_key: environment variable NO_SUCH_KEY is not set",
    "llm.generation.api_key: a text is needed, not int",
    "password: Field required [type=missing]",
    "token: expected a text, found 5",
    "https://kg.example/sparql?query=SELECT%20%2A%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D&infer=true&sig=none",
    "LINE_220kV_Graz-Wien_01, TRAFO-T4-110-20, key=LINE_220kV_Graz-Wien_01",
    "2026-11-23T10:00:00.123456Z, 1.2345678901234567E-12, 0x1F4A",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "AC/DC, SK Brann, SK11EW10, ACLineSegment, SKOS, AKIA, ASIA",
    "sig: the signature of a function; def sign(key: str, *, session: Session) -> bytes: ...",
    "hash_key=9e107d9d372bb6826bd81d3542a419d6 partition_key=substation",
    "jdbc:postgresql://localhost:5432/kg?user=reader&ssl=true",
    "session=SimpleSession(host='localhost', retries=3), key=lambda item: item.key",
)

_SECRET_VARIABLES = (
    "X_KEY APIKEY MY_TOKEN MY_SECRET DB_PASSWORD passwd A_CREDENTIALS DB_PASS PGPASS PGPASSWORD SSHPASS SSH_PASSPHRASE "
    "GH_PAT NEO4J_AUTH AUTH BEARER SESSION_COOKIE PRIVATE_KEY_PEM API_KEY_OPENAI API_KEY_V2 OPENAI_KEY1 API_KEYS "
    "GITHUB_TOKENS CLIENT_SECRETS dbPass openaiApiKey KG_CREDS MYSQL_PWD SECRET_KEY_BASE HTTP_BASIC_AUTH AUTH_HEADER"
)
_PLAIN_VARIABLES = (
    "PATH COMPASS AUTHOR MONKEY KEYBOARD_LAYOUT TOKENIZERS_PARALLELISM BYPASS OVERPASS_ENGINE PATTERN PASSENGERS "
    "KEYRING TOKEN_TYPE API_KEY_NAME AUTH_METHOD COOKIE_DOMAIN"
)
SECRET_VARIABLES = _SECRET_VARIABLES.split()
PLAIN_VARIABLES = (
    ("X_KEY", "short1"),
    ("SORT_KEY", "modified"),
    ("PRIMARY_KEY", "question_id"),
    ("MY_TOKEN", "12345678"),
    ("MAX_TOKENS", "100000000"),
    ("DB_PASSWORD", "password"),
    ("DB_PASS", "production"),
    ("AUTH", "client-credentials"),
    ("API_KEY_HEADER", "X-Api-Key"),
    ("FOREIGN_KEY", "Schlüsselwort"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/keys/google.json"),
    ("TLS_KEY", "certs/server-1.pem"),
    ("SSH_AUTH_SOCK", "/run/user/1000/agent.17"),
    ("XAUTHORITY", "/run/user/1000/.mutter-1"),
    ("TOKEN_URL", "https://login.example/oauth2/v2"),
    ("API_KEY", "<your-key-1>"),
    *((name, "qwertz-123") for name in _PLAIN_VARIABLES.split()),
)
