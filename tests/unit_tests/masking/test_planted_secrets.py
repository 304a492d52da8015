import json
from pathlib import Path

import pytest
from support.planted_secrets import LOOK_ALIKES, MORE_SECRETS, SECRETS, Planted, embeddings, leaks

from graphrag_eval_lc.masking import masked_and_found, masked_secrets, masked_text

ALL = (*SECRETS, *MORE_SECRETS)


def test_the_table_has_the_secrets_of_the_issue_and_thirty_more() -> None:
    assert len(SECRETS) == 46
    assert len(MORE_SECRETS) >= 30
    assert len(LOOK_ALIKES) >= 40


@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name)
def test_no_secret_is_left_however_it_is_embedded(planted: Planted) -> None:
    for name, text in embeddings(planted.text):
        masked = masked_text(text)
        assert leaks(planted, masked) == [], name
        assert masked_text(masked) == masked, name
        if name.startswith("JSON"):
            assert json.loads(masked), name


def test_what_is_told_of_a_secret_is_its_shape() -> None:
    for planted in ALL:
        found = masked_and_found(f"refused {planted.text}")[1]
        assert found, planted.name
        for each in found:
            shown, _, length = each.hint.partition("…")
            assert len(shown) <= 4, planted.name
            assert length.endswith("characters)"), planted.name
            assert not leaks(planted, str(each)), planted.name


def test_no_secret_is_left_in_what_tools_took_and_gave() -> None:
    for planted in ALL:
        value = {"given": [planted.text, {"more": f"x {planted.text} y"}], "n": 1}
        assert leaks(planted, json.dumps(masked_secrets(value), ensure_ascii=False)) == [], planted.name


def test_what_only_looks_like_a_secret_is_unchanged() -> None:
    for text in LOOK_ALIKES:
        for name, embedded in [("alone", text), *embeddings(text)]:
            assert masked_text(embedded) == embedded, name
        assert masked_secrets({"a": [text]}) == {"a": [text]}


def test_real_runs_are_unchanged_to_the_byte(conformance_dir: Path) -> None:
    files = [path for path in (conformance_dir / "real_runs").rglob("*") if path.is_file()]
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert masked_text(text) == text, path
        if path.suffix == ".jsonl":
            for line in text.splitlines():
                record = json.loads(line)
                assert masked_secrets(record) == record
                for step in record.get("actual_steps", ()):
                    assert masked_text(str(step.get("output"))) == str(step.get("output"))
