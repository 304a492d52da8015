import json
from pathlib import Path

import pytest
from support.planted_secrets import LOOK_ALIKES, MORE_SECRETS, SECRETS, Planted, embeddings, leaks

from graphrag_eval_lc.masking import masked_and_found, masked_secrets, masked_text

ALL = (*SECRETS, *MORE_SECRETS)


def test_table_of_secrets_is_complete() -> None:
    assert len(SECRETS) == 46
    assert len(MORE_SECRETS) >= 30
    assert len(LOOK_ALIKES) >= 40


@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name)
def test_secret_is_masked_however_it_is_embedded(planted: Planted) -> None:
    for name, text in embeddings(planted.text):
        masked = masked_text(text)
        assert leaks(planted, masked) == [], name
        assert masked_text(masked) == masked, name
        if name.startswith("JSON"):
            assert json.loads(masked), name


def test_hint_shows_only_the_shape_of_a_secret() -> None:
    for planted in ALL:
        found = masked_and_found(f"refused {planted.text}")[1]
        assert found, planted.name
        for each in found:
            shown, _, length = each.hint.partition("…")
            assert len(shown) <= 4, planted.name
            assert length.endswith("characters)"), planted.name
            assert not leaks(planted, str(each)), planted.name


def test_secrets_in_nested_values_are_masked() -> None:
    for planted in ALL:
        value = {"given": [planted.text, {"more": f"x {planted.text} y"}], "n": 1}
        assert leaks(planted, json.dumps(masked_secrets(value), ensure_ascii=False)) == [], planted.name


def test_look_alikes_are_unchanged() -> None:
    for text in LOOK_ALIKES:
        for name, embedded in [("alone", text), *embeddings(text)]:
            assert masked_text(embedded) == embedded, name
        assert masked_secrets({"a": [text]}) == {"a": [text]}


def test_real_runs_are_unchanged(conformance_dir: Path) -> None:
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
