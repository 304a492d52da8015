"""Finds secrets by the name in front of them, and distinguishes random values from words, numbers and digests."""

import math
import re
from collections import Counter
from urllib.parse import unquote

from graphrag_eval_lc.masking.rules import ENDS_TEXT, MASK, Rule, after_prefix, joined

_UUID = re.compile(r"[_{]?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\}?")
_HEX_NUMBER = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_DIGESTS = frozenset({32, 40, 56, 64, 96, 128})  # lengths in hex: MD5, SHA-1 (also git's), SHA-2
_WORD = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}(?![a-z])")
_VOWELS = re.compile("[aeiouyAEIOUY]")
_TOKEN = re.compile(r"[A-Za-z0-9+/_.~-]+={0,3}", re.ASCII)
_CLASSES = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))
_CHANGES = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[A-Z][A-Z])(?=[a-z])|(?<=[0-9])(?=[A-Za-z])")
_LONGEST_MEASURED = 600
_SHORTEST = 16
_MOST_ENCODINGS = 3  # a URL in a URL in a URL
_SHORTEST_OF_TWO = 20  # the shortest random value of two classes of characters, such as lower case and digits
_LEAST_BITS = 3.0  # entropy for each character
_LEAST_HEX_BITS = 2.8
_MOST_IN_WORDS = 0.6  # the share of characters that may be in words
_CHARACTERS_A_CHANGE = 4.5  # at most, between changes of class; in words and numbers the class changes rarely


def looks_random(value: str, *, digests_are: bool = True) -> bool:
    """Return whether a value was made at random, as keys and signatures are.

    Words, numbers, dates, IRIs, paths, UUIDs, and identifiers composed of words and numbers are not.

    Example:
        >>> looks_random("k3jd9fLz0qWm81aXpR7t"), looks_random("substation-graz-220kV-17")
        (True, False)
    """
    text = value[:_LONGEST_MEASURED]
    for _ in range(_MOST_ENCODINGS):
        if "%" in text:
            text = unquote(text)
    if len(text) < _SHORTEST or _TOKEN.fullmatch(text) is None or _UUID.fullmatch(text):
        return False
    if _HEX_NUMBER.fullmatch(text):
        is_random = not text.isdigit() and len(text) >= 32 and bits_a_character(text) >= _LEAST_HEX_BITS
        return is_random and (digests_are or len(text) not in _DIGESTS)
    has_lower, has_upper, has_digit = (pattern.search(text) is not None for pattern in _CLASSES)
    if len(text) < _SHORTEST_OF_TWO and not (has_lower and has_upper and has_digit):
        return False
    if sum(1 for _ in _CHANGES.finditer(text)) * _CHARACTERS_A_CHANGE < len(text):
        return False
    words = (word for word in _WORD.findall(text) if 0.2 <= len(_VOWELS.findall(word)) / len(word) <= 0.7)
    share_in_words = sum(map(len, words)) / len(text)
    if has_lower and has_upper and share_in_words >= (_MOST_IN_WORDS if has_digit else _MOST_IN_WORDS / 2):
        return False
    return bits_a_character(text) >= _LEAST_BITS


def bits_a_character(text: str) -> float:
    """Return the Shannon entropy of a text's characters, in bits a character; 0 for an empty text."""
    counts = Counter(text).values()
    return -math.fsum(count / len(text) * math.log2(count / len(text)) for count in counts) + 0.0


# --- sure names: whatever value follows is a secret ------------------------------------------------------------------

_KEY_OWNERS = (
    *("api", "access", "account", "secret", "private", "signing", "encryption", "subscription", "storage", "master"),
    *("fernet", "admin", "license", "webhook", "deploy", "service"),
)
_KEY = r"(?<=[A-Za-z_\ -])(?:" + "|".join(rf"(?<={owner})|(?<={owner}[_\ -])" for owner in _KEY_OWNERS) + ")key"
_ABOUT_TEXTS = "(?i: token | credentials? )"  # words that prose uses, too
_SURE = rf"(?i: authorization | password | passwd | passphrase | passcode | pwd | secret | {_KEY} )"
_STRICT = rf"(?: {_ABOUT_TEXTS} | {_SURE} )"
_SEPARATOR = r"(?: \s{0,3} [:=](?![:=]) \s{0,3} | %(?:25){0,3}3[DdAa] )"
_ENTITY = r"&(?:quot|apos|\#34|\#39|\#x27);"
_HEAD = rf"""
    (?P<name> (?P<in_prose> {_ABOUT_TEXTS} ) | {_SURE} )
    (?P<key_quote> \\{{0,7}}["'] | "" | {_ENTITY} )?
    (?P<separator> {_SEPARATOR} )
    (?(in_prose) (?(key_quote) | (?<!:) ) )  # token:hasPart
"""
_QUOTED = rf"""
    "" {ENDS_TEXT} (?P<doubled> [^"\n]++ ) (?= "" )  # in CSV files
    | {_ENTITY} (?! \s*+ [:,}}\]] ) (?P<of_entities> (?: [^&<\n]++ | &(?!quot;|apos;|\#) )*+ )  # in HTML
    | (?P<quote> [BbRrUu]{{0,2}}["'] | \\{{1,7}}["'] ) {ENDS_TEXT}
    (?:
        (?<=[^\\]") (?P<double_quoted> (?: [^"\\\n]++ | \\[^\n] )*+ )
        | (?<=[^\\]') (?P<single_quoted> (?: [^"'\\\n]++ | \\[^\n] | "(?!\s*+(?:[:,}}\]]|\Z)) )*+ )
        | (?<=\\") (?P<escaped_double> (?: [^"\\\n]++ | \\(?!\\{{0,6}}["\n]) )*+ )
        | (?<=\\') (?P<escaped_single> (?: [^"'\\\n]++ | \\(?!\\{{0,6}}['"\n]) )*+ )
    )
"""
_SCHEMES = "(?i:bearer|basic|token|apikey|negotiate|ntlm|bot|gdb|ssws|sharedkey|splunk|key|gitlab)"
# Schemes that have either one credential, or parameters, which have their own rule.
_EITHER = "(?i:oauth|hawk|signature)"
# Under these two names some values are not secrets: a scheme with parameters, or token = new Token().
_SAYING = ("token", "authorization")
_NO_SECRET = re.compile(rf"{_EITHER}|(?i:new|digest|aws4-hmac-sha256|goog4-rsa-sha256)")
_BARE = rf"""
    (?P<bare>
        (?! [\[{{] )
        (?: {_SCHEMES} [ ]{{1,3}} | {_EITHER} [ ]{{1,3}} (?! [A-Za-z_*-]{{1,40}}[ ]?=[ ]?[\w"'\\] ) )?
        (?: \$\{{\w+\}} | [^\s"'&;<>\\,)\]}}$]++ | \$ | \\(?![nrt"'\\])
            | [,)\]}}](?=[A-Za-z0-9])(?!\w{{1,30}}["']?[:=]) )++
    )
"""
_PAIR = rf"{_HEAD} (?: {_QUOTED} | {_BARE} )"
_VALUE_GROUPS = ("double_quoted", "single_quoted", "escaped_double", "escaped_single", "doubled", "of_entities", "bare")
_NO_SECRETS = frozenset({"none", "null", "true", "false", "undefined"})
# ${NAME}, and how an expression of GitHub's workflows begins.
_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$\{(?:\w+\}|\{.*)", re.ASCII)
_CALL = re.compile(r"[A-Za-z_][\w.]*\(", re.ASCII)
_SCHEME = re.compile(rf"(?:{_SCHEMES}|{_EITHER}) +", re.ASCII)
_IRI = re.compile(r"https?://[^\s@?]+|urn:[a-z][a-z0-9-]{1,31}:[^\s@?]+")
_OPAQUE = re.compile(r"(?=.{8,})(?:(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])|(?=.{20,}))[\w./+=~-]+", re.ASCII)
# Words that continue a message after a name and a colon: "api_key: environment variable X is not set".
_MESSAGE_WORD = re.compile(
    r"""
    a | all | an | any | are | as | at | be | both | but | by | cannot | can | could | did | do | does |
    each | either | empty | environment | every | expected | extra | field | for | found | from | give |
    given | got | has | have | here | if | in | input | instead | invalid | is | it | its | missing |
    must | name | need | needed | needs | neither | no | none | not | nothing | of | on | only |
    optional | or | please | provided | required | see | set | should | some | such | text | that | the
    | there | these | they | this | to | too | two | unexpected | unknown | unset | use | value |
    variable | was | where | which | with | without | wrong | you | your
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FOLDER = re.compile(r"[/~]|[A-Za-z]:[/\\]")
# What precedes a name, or its last part, in SPARQL and Cypher: ?token, $token, n.token and {token: …}. In a URL,
# sparql?token=… is not a variable; PHP has $token=… too, so it counts only inside a query.
_IN_A_QUERY = re.compile(
    r"(?:(?P<variable>(?:\A|[\s(!,{|&=+*]|\\[nrt])\?\w*)|\$\w*|\w(?<!self)\.\w*|(?P<map>[{,]\s{0,3}\w*))\Z"
)
_QUERY = re.compile(  # in lower case with a space before "(", because Python has re.match(…)
    r"(?:MATCH|MERGE|FILTER|BIND)\s*\(|(?:[Mm]atch|[Mm]erge|[Ff]ilter|[Bb]ind)\s+\(|(?:ASK|[Aa]sk|WHERE|[Ww]here)\s*\{"
)
_LONGEST_LOOK = 400  # how many characters before a name are searched for the query that it is in
_NEXT_WORD = re.compile(r"\s+[A-Za-z'\"`(]", re.ASCII)


def _masked_pair(match: re.Match[str]) -> str | None:
    group = next(group for group in _VALUE_GROUPS if match[group] is not None)
    value = match[group]
    if (
        is_no_secret(value)
        or (match["name"].lower() in _SAYING and _NO_SECRET.fullmatch(value))
        or is_iri(value)
        or is_folder(match["name"].lower(), value)
        or _is_about_tokens(match, value)
        or (group == "bare" and _is_code_or_prose(match, value))
        or _is_of_a_query(match, value)
    ):
        return None
    scheme = _SCHEME.match(value)
    masked = (scheme[0] if scheme else "") + MASK
    if group == "bare" and match["key_quote"]:  # a number in JSON: *** needs quotes to stay JSON
        masked = match["key_quote"] + masked + match["key_quote"]
    return match[0][: len(match[0]) - len(value)] + masked


def is_no_secret(value: str) -> bool:
    """Return whether a value under a secret's name is harmless: empty, already masked, a constant, or a reference."""
    if not value.strip("*….\\"):  # masked, and perhaps shortened later
        return True
    return value.lower() in _NO_SECRETS or _REFERENCE.fullmatch(value) is not None


def is_opaque(value: str) -> bool:
    """Return whether a value may be a key: one word, with letters and digits (8 characters or more) or very long."""
    return _OPAQUE.fullmatch(value) is not None


def is_iri(value: str) -> bool:
    """Return whether a value is an IRI that names something: without a password, and without a query."""
    return _IRI.fullmatch(value) is not None


def is_folder(name: str, value: str) -> bool:
    """Return whether a value under ``pwd`` is the current folder and not a password."""
    return name.endswith("pwd") and _FOLDER.match(value) is not None


def _is_of_a_query(match: re.Match[str], value: str) -> bool:
    """Return whether a name is a variable or property in a query, with a value that does not look random."""
    start = match.start()
    before = _IN_A_QUERY.search(match.string, max(0, start - 60), start)
    if before is None or looks_random(value):
        return False
    is_quoted = match["bare"] is None
    if (before["variable"] and is_quoted) or _QUERY.search(match.string, max(0, start - _LONGEST_LOOK), start):
        # YAML and Python have {password: pa55} and {password: name}
        return is_quoted or value.startswith("$") or before["map"] is None
    return False


def _is_code_or_prose(match: re.Match[str], value: str) -> bool:
    if _CALL.fullmatch(value):
        return True
    is_prose = match["key_quote"] is None and match["separator"].endswith(" ") and ":" in match["separator"]
    return (
        is_prose
        and _MESSAGE_WORD.fullmatch(value) is not None
        and _NEXT_WORD.match(match.string, match.end()) is not None
    )


def _is_about_tokens(match: re.Match[str], value: str) -> bool:
    """Return whether a value is a number of tokens, or prose such as ``Unexpected token: 'SELECT'``, not a secret."""
    name = match["name"].lower()
    is_api_key_in_prose = name == "key" and match.string[match.start() - 1] == " "
    if not name.startswith(("token", "credential")) and not is_api_key_in_prose:
        return False
    if name == "token" and value.isdigit() and len(value) < 8:
        return True
    is_prose = match["key_quote"] is None and ":" in match["separator"]
    return is_prose and (not match["separator"].endswith(" ") or _OPAQUE.fullmatch(value) is None)


# --- lists of secrets ------------------------------------------------------------------------------------------------

_TEXT = r"""(?: "(?:[^"\\\n]|\\[^\n])*+" | '(?:[^'\\\n]|\\[^\n])*+' )"""
_LIST = rf"""
    (?P<head> (?! (?i:token) ) {_STRICT} s? ["'] {_SEPARATOR} \[ \s{{0,40}} )  # not the tokens of a text
    (?P<items> {_TEXT} (?: \s{{0,40}} , \s{{0,40}} {_TEXT} )*+ )
    (?= \s*+ \] )
"""
_ITEM = re.compile(_TEXT, re.VERBOSE | re.ASCII)


def _masked_list(match: re.Match[str]) -> str:
    def masked_item(item: re.Match[str]) -> str:
        quote = item[0][0]
        return item[0] if is_no_secret(item[0][1:-1]) else quote + MASK + quote

    return match["head"] + _ITEM.sub(masked_item, match["items"])


# --- soft names: the value is a secret only if it looks random -------------------------------------------------------

_SOFT = (
    *("key", "keys", "sig", "signature", "session", "sessid", "sess", "sid", "auth", "pass", "pw", "cred", "creds"),
    *("hmac", "jwt", "csrf", "xsrf", "otp", "salt", "nonce", "assertion", "code", "access", "private", "bearer", "pat"),
    *("cookie", "dsn"),
)
# Names in snake case; a value under them is a secret if it looks random.
SOFT_NAME = re.compile(rf"(?:.*[_\-.])?(?:x_)?{joined(_SOFT)}(?:_?(?:id|v?[0-9]+|value|key|data|header))?", re.ASCII)
_NO_START = r"(?: (?<![A-Za-z]) | (?<=[a-z0-9])(?=[A-Z]) | (?<=JSES) | (?<=PHP) | (?<=[_J]) )"
_RANDOM = r"(?: [A-Za-z0-9+/_.~-] | \\{1,3}/ | %(?:25){0,3}(?:2[BDEFbdef]|3[Dd]|5[Ff]|7[Ee]) )"  # not %26, which is &
_SOFT_PAIR = rf"""
    (?P<head> {_NO_START} (?P<name> (?i: {joined(sorted(_SOFT, key=len, reverse=True))} ) )
        (?: [_-]?(?i:id|value|key|data|header|v?[0-9]{{1,2}}) )?
        (?P<key_quote> \\{{0,7}}["'] )? {_SEPARATOR} [BbRrUu]? (?: \\{{0,7}}["'] )? )
    (?P<value> {_RANDOM}{{16,4096}}+ ={{0,3}} ) (?! [A-Za-z0-9=:@(] )
"""
_IN_QUERY = re.compile(r"[?&;]\Z|[?&;][A-Za-z0-9_.-]{1,40}\Z")
_SHORTEST_CODE = 30  # OAuth codes are longer; shorter values are codes of things


def _masked_random(match: re.Match[str]) -> str | None:
    name = match["name"].lower()
    value = match["value"].replace("\\", "")
    # A value that is called a key is often the digest of something.
    is_digest_meant = name in ("key", "keys", "code", "access", "salt") and not _is_in_query(match)
    if not looks_random(value, digests_are=not is_digest_meant):
        return None
    if name in ("code", "access", "nonce", "salt") and (len(value) < _SHORTEST_CODE or not _is_in_query(match)):
        return None
    return match["head"] + MASK


def _is_in_query(match: re.Match[str]) -> bool:
    return _IN_QUERY.search(match.string, max(0, match.start() - 60), match.start()) is not None


# --- keys quoted in error messages -----------------------------------------------------------------------------------

_SAID = r"""
    (?P<head> (?i: api[ _-]?key | (?: access | api | auth(?:entication)? )[ ]token | secret[ ]key )
        (?P<verb> [ ] (?i: provided | given | received | used | supplied | sent | was | is | value ) (?: [ ]?[:=] )? )?
        [ ]{1,2} [\(<\[]? (?: \\{0,7}["'`] )? )
    (?P<value> (?!sk-) [A-Za-z0-9+/_.~-]{11,512} [A-Za-z0-9+/_~-] ={0,3} )
"""
_HEX = re.compile("[0-9a-f-]+")


def _masked_said(match: re.Match[str]) -> str | None:
    is_sure = match["verb"] or _HEX.fullmatch(match["value"])
    is_secret = looks_random(match["value"]) or (is_sure and is_opaque(match["value"]))
    return match["head"] + MASK if is_secret else None


_NEO4J = rf"(?P<prefix> (?i:neo4j_auth) ['\"]? {_SEPARATOR} ['\"]? [^\s/'\"$]+/ ) (?!\$) [^\s'\"&;<>\\,]+"
_NAMES = ("authorization", "passw", "passphrase", "passcode", "pwd", "secret", "token", "credential", "key")
NAME_RULES = (
    Rule("value of a secret name", _NAMES, _PAIR, _masked_pair),
    Rule("list of a secret name", _NAMES, _LIST, _masked_list),
    Rule("password of Neo4j", ("neo4j_auth",), _NEO4J, after_prefix),
    Rule("random value of a name", _SOFT, _SOFT_PAIR, _masked_random),
    Rule("key in a message", ("api", "access token", "auth", "secret key"), _SAID, _masked_said),
)
