"""The command `judge certify`, over HTTP, with a judge whose mistakes are known."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest, http_error, refusal

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.judges.altered_answers import KINDS, Reference, altered_answers
from graphrag_eval_lc.report.markdown_summary import summary_text

Command = Callable[..., int]
COMMAND = ("judge", "certify", "qa.yaml", "-c", "config.yaml", "-q", "--asks", "1", "--per-kind", "2")
REFERENCES = [
    Reference("q1", "a", "Which are in NO5?", "NO5 has 3 substations: AURLAND, BERGEN, MODALEN."),
    Reference("q2", "a", "Which are in NO1?", "NO1 has 2 substations: ASKER, HALDEN."),
    Reference("q3", "b", "What are the 2 longest lines, the longest first?", "A-B (655 km), C-D (318 km)."),
    Reference("q4", "b", "What is the capacity of NO4?", "The capacity of NO4 is 527 MW."),
]
ANSWERS = altered_answers(REFERENCES, per_kind=2)
QUESTIONS = [
    {
        "template_id": template,
        "questions": [
            {"id": each.question_id, "question_text": each.question, "reference_answer": each.answer}
            for each in REFERENCES
            if each.template_id == template
        ],
    }
    for template in ("a", "b")
]


class KnownJudge:
    """Judges altered answers correctly, except those of ``mistaken`` kinds."""

    def __init__(self) -> None:
        self.mistaken: set[str] = set()
        # The longest first, since a padded answer contains the plain one.
        self._made = sorted(ANSWERS, key=lambda each: -len(each.text))

    def __call__(self, request: StubRequest) -> dict[str, Any]:
        reference = next(each for each in REFERENCES if each.question in request.user)
        answer = next(
            each
            for each in self._made
            if f"\n{each.text}\n</actual" in request.user and each.question_id == reference.question_id
        )
        is_right = KINDS[answer.kind].is_right is (answer.kind not in self.mistaken)
        claims = [reference.answer]
        right, wrong = (claims, []) if is_right else ([], claims)
        return {
            "reason": "so",
            "true_positives": right,
            "false_positives": ["It is blue."] if wrong else [],
            "covered_claims": right,
            "false_negatives": wrong,
        }


@pytest.fixture
def known() -> KnownJudge:
    return KnownJudge()


@pytest.fixture
def stub(files: Path, known: KnownJudge) -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        stub.answer = known
        (files / "config.yaml").write_text(
            f"llm: {{generation: {{base_url: '{stub.base_url}', api_key: k}}}}\njudges: {{max_retries: 0}}\n"
        )
        (files / "qa.yaml").write_text(json.dumps(QUESTIONS))
        yield stub


def certificate() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("judge_certificate.json").read_text("utf-8"))
    return found


def by_kind(found: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: f"{each['count']} of {each['of']}" for each in found["kinds"]}


def test_judge_without_mistakes_detects_and_passes_everything(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*COMMAND) == 0
    found, text = certificate(), capsys.readouterr().out
    assert {each["name"]: each["count"] for each in found["kinds"]} == {
        each["name"]: each["of"] for each in found["kinds"]
    }
    assert found["kinds"][0] | {"low": 0, "high": 0} == {
        "name": "value_dropped", "title": "a value or row is missing", "is_right": False, "answers": 2, "errors": 0,
        "count": 2, "of": 2, "share": 1.0, "low": 0, "high": 0, "mean_answer_f1": 0.0,
    }  # fmt: skip
    assert found["verbosity_bias_right"]["mean"] == 0.0
    assert found["answers"] == len(found["cases"]) == len(ANSWERS)
    assert "a value or row is missing" in text
    assert "Written to judge_certificate.json" in text


def test_mistakes_are_counted_by_kind_and_biases_are_paired(
    stub: OpenAIStub, known: KnownJudge, exit_code: Command
) -> None:
    known.mistaken = {"order_wrong", "padded", "instructed"}
    assert exit_code(*COMMAND) == 0
    found = certificate()
    kinds = by_kind(found)
    assert (kinds["order_wrong"], kinds["padded"], kinds["instructed"], kinds["as_reference"]) == (
        "0 of 1",
        "0 of 2",
        "0 of 2",
        "2 of 2",
    )
    wrong = sum(not KINDS[each.kind].is_right for each in ANSWERS)
    assert (found["caught"]["count"], found["caught"]["of"]) == (wrong - 1, wrong)
    assert (found["verbosity_bias_right"]["mean"], found["verbosity_bias_right"]["pairs"]) == (-1.0, 2)
    assert found["order_bias"]["mean"] == 0.0


def test_same_answer_is_judged_several_times_and_all_are_cached(
    stub: OpenAIStub, known: KnownJudge, exit_code: Command
) -> None:
    asked: dict[str, int] = {}

    def different_second_time(request: StubRequest) -> dict[str, Any]:
        asked[request.user] = asked.get(request.user, 0) + 1
        known.mistaken = {"as_reference"} if asked[request.user] == 2 else set()
        return known(request)

    stub.answer = different_second_time
    assert exit_code(*COMMAND, "--asks", "3", "--repeated", "1") == 0
    found, requests = certificate(), len(stub.requests)
    repeated = len(found["kinds"])
    assert found["answers"] == requests == sum(each["answers"] for each in found["kinds"]) + 2 * repeated
    agreed = found["self_agreement"]
    assert (agreed["asks"], agreed["count"], agreed["of"]) == (3, repeated - 1, repeated)
    assert 0.8 < agreed["alpha"] < 1
    assert exit_code(*COMMAND, "--asks", "3", "--repeated", "1") == 0
    assert len(stub.requests) == requests
    assert certificate()["cost"] == pytest.approx(found["cost"])
    assert exit_code(*COMMAND, "--overwrite") == 0
    assert len(stub.requests) == requests + certificate()["answers"]


def test_exhausted_budget_writes_no_certificate_and_can_be_resumed(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*COMMAND, "--max-cost", "0.002") == 2
    assert "the certificate is not complete" in capsys.readouterr().err
    assert not Path("judge_certificate.json").exists()
    first = len(stub.requests)
    assert exit_code(*COMMAND, "--max-cost", "1") == 0
    assert 0 < first < len(stub.requests) == certificate()["answers"]


def test_dry_run_sends_and_writes_nothing(
    stub: OpenAIStub, files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name for path in files.iterdir()}
    assert exit_code(*COMMAND, "--dry-run") == 0
    count = len(ANSWERS)
    assert f"The judges would send {count} requests" in capsys.readouterr().out
    assert (stub.requests, {path.name for path in files.iterdir()}) == ([], before)


def test_answers_without_a_judgement_are_skipped_and_counted(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.fault_of = lambda request: refusal() if "<https://data.example" in request.user else None
    assert exit_code(*COMMAND) == 0
    found = certificate()
    failed = next(each for each in found["kinds"] if each["name"] == "with_iris")
    assert (failed["of"], failed["share"], failed["errors"]) == (0, None, failed["answers"])
    assert found["errors"] == failed["answers"]
    assert "could not be judged and are left out" in capsys.readouterr().out


def test_wrong_key_is_one_error(stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    stub.fault_of = lambda request: http_error(401, "wrong key")
    assert exit_code(*COMMAND) == 2
    assert "refused 3 requests in a row" in capsys.readouterr().err
    assert not Path("judge_certificate.json").exists()


def test_dataset_without_reference_answers_is_rejected(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("qa.yaml").write_text("- {template_id: t, questions: [{id: q, question_text: Why?}]}")
    assert exit_code(*COMMAND) == 2
    assert "no question has a reference_answer" in capsys.readouterr().err


def test_run_shows_the_certificate_or_its_absence(stub: OpenAIStub, exit_code: Command) -> None:
    assert exit_code(*COMMAND) == 0
    generation = {"base_url": stub.base_url, "api_key": "k"}
    config = {"llm": {"generation": generation}, "judges": {"max_retries": 0, "certificate": "judge_certificate.json"}}
    answers = {each.question: each.answer for each in REFERENCES}

    def note(config: dict[str, Any]) -> str:
        run = run_benchmark(lambda question: answers[question], QUESTIONS, config=config, progress="off")
        assert run.view().judge_note in summary_text(run).replace("\\", "")
        return run.view().judge_note

    total = certificate()["caught"]
    assert f"it caught {total['count']} of {total['of']} (" in note(config)
    assert "is of another judge" in note({**config, "llm": {"generation": {**generation, "model": "gpt-4o"}}})
    assert note({"llm": {"generation": generation}}).startswith("No certificate says how good this judge is")


def test_unreadable_certificate_is_one_error(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (None, "{}", "not JSON"):
        if text is not None:
            Path("judge_certificate.json").write_text(text)
        Path("agent.py").write_text("def agent(question): return 'x'")
        config = (
            Path("config.yaml")
            .read_text()
            .replace("max_retries: 0", "max_retries: 0, certificate: judge_certificate.json")
        )
        Path("with.yaml").write_text(config)
        assert exit_code("run", "qa.yaml", "-a", "agent.py:agent", "-c", "with.yaml", "-o", "out", "-q") == 2
        assert "judges.certificate" in capsys.readouterr().err
