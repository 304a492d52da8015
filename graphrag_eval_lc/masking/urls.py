"""What addresses tell: passwords before the host, signatures in the query, webhooks whose address is the secret."""

import re

from graphrag_eval_lc.masking.rules import MASK, Rule

_SLASH = r"(?:\\{0,3}/|%2[Ff])"
_HOOK = r"(?:[A-Za-z0-9_.%@-]|\\{0,3}/)"


def _after_prefix(match: re.Match[str]) -> str:
    return match["prefix"] + MASK


RULES = (
    Rule(
        "password in a URL",
        ("://",),
        r"(?P<prefix> :// [^\s/?\#:@\"'<>]{0,256} : ) (?!\$\{\w+\}@) [^\s/?\#\"'<>]+ (?=@)",
        _after_prefix,
    ),
    Rule(
        "password in a URL",
        ("%3a%2f%2f",),
        r"""
        (?P<prefix> (?i:%3A%2F%2F) [A-Za-z0-9_.~+-]{0,256} (?i:%3A) )
        (?: [A-Za-z0-9_.~!*'()-] | %(?!40|20|2[FfDd]|3[FfEeCc]|0[AaDd])[0-9A-Fa-f]{2} ){1,512} (?= %40 )
        """,
        _after_prefix,
    ),
    Rule(
        "Slack webhook",
        ("hooks.slack.com",),
        rf"(?P<prefix> (?i:hooks\.slack\.com){_SLASH}(?:services|workflows|triggers){_SLASH} ) {_HOOK}{{20,}}",
        _after_prefix,
    ),
    Rule(
        "Discord webhook",
        ("discord.com", "discordapp.com"),
        rf"""(?P<prefix> (?i:discord(?:app)?\.com){_SLASH}api{_SLASH}(?:v[0-9]+{_SLASH})?
            webhooks{_SLASH}[0-9]+{_SLASH} ) {_HOOK}{{30,}}""",
        _after_prefix,
    ),
    Rule(
        "Teams webhook",
        ("webhook.office.com",),
        rf"(?P<prefix> (?i:webhook\.office\.com){_SLASH}webhookb2{_SLASH} ) {_HOOK}{{30,}}",
        _after_prefix,
    ),
    Rule(
        "Zapier webhook",
        ("hooks.zapier.com",),
        rf"(?P<prefix> (?i:hooks\.zapier\.com){_SLASH}hooks{_SLASH}catch{_SLASH}[0-9]+{_SLASH} ) [a-z0-9]{{4,}}",
        _after_prefix,
    ),
)
