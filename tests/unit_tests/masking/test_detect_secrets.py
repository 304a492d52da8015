"""Cross-check with detect-secrets: what it finds in the table of secrets, this package masks too."""

import pytest
from support.planted_secrets import LOOK_ALIKES, MORE_SECRETS, SECRETS, embeddings

from graphrag_eval_lc.masking import masked_text

pytest.importorskip("detect_secrets")

from detect_secrets.core.scan import scan_line
from detect_secrets.settings import transient_settings

# Without Base64HighEntropyString, HexHighEntropyString, KeywordDetector and IPPublicDetector: entropy also matches
# identifiers and digests, and keywords match any word after them.
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
            # It reports only the first line of a block, and only the beginning of some tokens.
            if each.secret_value and "PRIVATE KEY" not in each.secret_value and len(each.secret_value) >= 12
        ]


@pytest.mark.full
def test_secrets_found_by_detect_secrets_are_masked() -> None:
    found = 0
    for planted in (*SECRETS, *MORE_SECRETS):
        for name, text in embeddings(planted.text):
            for secret in found_in(text):
                found += 1
                masked = masked_text(text)
                assert secret not in masked or secret.startswith("AC"), (planted.name, name)  # an account, not a secret
    assert found > 50


def test_detect_secrets_finds_nothing_in_masked_texts() -> None:
    for planted in (*SECRETS, *MORE_SECRETS):
        findings = [each for each in found_in(masked_text(planted.text)) if not each.startswith(("AC", "***"))]
        assert findings == [], planted.name
        assert all("***" in each for each in findings)


def test_detect_secrets_agrees_on_look_alikes() -> None:
    assert [text for text in LOOK_ALIKES if found_in(text)] == []
