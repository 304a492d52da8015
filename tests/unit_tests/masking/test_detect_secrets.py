"""A cross-check: what another tool's plugins find in the table of secrets, our masking masks too."""

import pytest
from support.planted_secrets import LOOK_ALIKES, MORE_SECRETS, SECRETS, embeddings

from graphrag_eval_lc.masking import masked_text

pytest.importorskip("detect_secrets")

from detect_secrets.core.scan import scan_line
from detect_secrets.settings import transient_settings

# Without Base64HighEntropyString, HexHighEntropyString, KeywordDetector and IPPublicDetector: what goes by entropy
# finds identifiers and digests, and what goes by keywords finds any word behind them.
SETTINGS = {
    "plugins_used": [
        {"name": name}
        for name in (
            *("ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector"),
            *("CloudantDetector", "DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector"),
            *("IbmCloudIamDetector", "IbmCosHmacDetector", "JwtTokenDetector", "MailchimpDetector", "NpmDetector"),
            *("OpenAIDetector", "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector"),
            *("SoftlayerDetector", "SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector"),
            "TwilioKeyDetector",
        )
    ]
}


def found_in(text: str) -> list[str]:
    with transient_settings(SETTINGS):
        return [
            each.secret_value
            for line in text.splitlines()
            for each in scan_line(line)
            # Of a block it finds the first line, and of some tokens the beginning.
            if each.secret_value and "PRIVATE KEY" not in each.secret_value and len(each.secret_value) >= 12
        ]


@pytest.mark.full
def test_what_another_tool_finds_is_masked() -> None:
    found = 0
    for planted in (*SECRETS, *MORE_SECRETS):
        for name, text in embeddings(planted.text):
            for secret in found_in(text):
                found += 1
                masked = masked_text(text)
                assert secret not in masked or secret.startswith("AC"), (planted.name, name)  # no secret: an account
    assert found > 50


def test_it_finds_nothing_in_a_masked_text() -> None:
    for planted in (*SECRETS, *MORE_SECRETS):
        left = [each for each in found_in(masked_text(planted.text)) if not each.startswith(("AC", "***"))]
        assert left == [], planted.name
        assert all("***" in each for each in left)


def test_look_alikes_are_known_to_be_harmless() -> None:
    assert [text for text in LOOK_ALIKES if found_in(text)] == []
