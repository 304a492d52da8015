"""What addresses tell: passwords before the host, signatures in the query, webhooks whose address is the secret."""

import re

from graphrag_eval_lc.masking.rules import MASK, Rule

_HOOK = "[A-Za-z0-9_/.%@-]"


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
        "Slack webhook",
        ("hooks.slack.com/",),
        rf"(?P<prefix> (?i:hooks\.slack\.com)/(?:services|workflows|triggers)/ ) {_HOOK}{{20,}}",
        _after_prefix,
    ),
    Rule(
        "Discord webhook",
        ("discord.com/api/", "discordapp.com/api/"),
        rf"(?P<prefix> (?i:discord(?:app)?\.com)/api/(?:v[0-9]+/)?webhooks/[0-9]+/ ) {_HOOK}{{30,}}",
        _after_prefix,
    ),
    Rule(
        "Teams webhook",
        ("webhook.office.com/",),
        rf"(?P<prefix> (?i:webhook\.office\.com)/webhookb2/ ) {_HOOK}{{30,}}",
        _after_prefix,
    ),
    Rule(
        "Zapier webhook",
        ("hooks.zapier.com/",),
        r"(?P<prefix> (?i:hooks\.zapier\.com)/hooks/catch/[0-9]+/ ) [a-z0-9]{4,}",
        _after_prefix,
    ),
)
