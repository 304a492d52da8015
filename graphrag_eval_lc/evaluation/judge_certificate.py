"""Makes the certificate of a judge: how often it catches known wrong answers and accepts known right ones."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.errors import DatasetError, NothingToCompareError, OptionError
from graphrag_eval_lc.evaluation.judge_agreement import Share
from graphrag_eval_lc.evaluation.judged_tables import AnswerJudge, Progress
from graphrag_eval_lc.evaluation.pipeline import Workers
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.judges.altered_answers import KINDS, AlteredAnswer, Reference, pairs_of
from graphrag_eval_lc.judges.model import ask_number
from graphrag_eval_lc.judges.model_interface import (
    GivenUpError,
    NotAskedError,
    cost_of,
    error_record,
    raise_if_cancelled,
    total_cost,
)
from graphrag_eval_lc.metrics import MeanDifference, krippendorffs_alpha
from graphrag_eval_lc.records import Template
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_F1, COST

CERTIFICATE_KIND: Final = "judge_certificate"
# By the name of a bias: the kind of answer that differs only in form, and a phrase for the plain form.
_BIASES: Final = {
    "verbosity_bias_right": "padded",
    "verbosity_bias_wrong": "other_padded",
    "order_bias": "reordered",
    "instruction_bias_right": "instructed",
    "instruction_bias_wrong": "other_instructed",
}


def references_of(templates: Sequence[Template]) -> list[Reference]:
    """Return the questions that have a reference answer; raise a DatasetError if there are none."""
    found = [
        Reference(
            str(question["id"]),
            str(template["template_id"]),
            question["question_text"],
            answer,
            is_ordered=any(step.get("ordered") for step in (question.get("reference_steps") or [[]])[-1]),
        )
        for template in templates
        for question in template["questions"] or ()
        if isinstance(answer := question.get("reference_answer"), str) and answer.strip()
    ]
    if not found:
        raise DatasetError(
            "no question has a reference_answer", hint="Add reference answers: the certificate is made from them."
        )
    return found


@dataclass(frozen=True, slots=True)
class Ask:
    """An answer to judge, and how many times it has been judged with this one, from 1."""

    answer: AlteredAnswer
    number: int


def asks_of(answers: Sequence[AlteredAnswer], *, asks: int, repeated: int) -> list[Ask]:
    """Return what to judge: ``repeated`` answers of each kind ``asks`` times, and all others once."""
    counts: dict[str, int] = {}
    found = []
    for answer in answers:
        counts[answer.kind] = counts.get(answer.kind, 0) + 1
        found += [Ask(answer, number) for number in range(1, asks + 1 if counts[answer.kind] <= repeated else 2)]
    return found


@dataclass(frozen=True, slots=True)
class Judged:
    """The judge's ``answer_f1`` for an answer, or None and the error; and the cost in USD, None if unknown."""

    ask: Ask
    score: float | None
    error: str
    cost: float | None


class Certifying:
    """Judges altered answers concurrently; ``judged`` has the answers so far, ``stopped`` why no more are judged."""

    def __init__(self, judge: AnswerJudge, references: Sequence[Reference], progress: Progress) -> None:
        self.judged: list[Judged] = []
        self.stopped: str | None = None
        self._judge = judge
        self._references = {each.question_id: each for each in references}
        self._progress = progress

    def run(self, asks: Sequence[Ask]) -> None:
        """Judge the answers; those in the cache are not sent again."""
        self._progress.started(len(asks), 0)
        run_sync(lambda: Workers(self._ajudge, max_concurrency=self._judge.max_concurrency).arun(asks))

    async def _ajudge(self, ask: Ask) -> None:
        reference = self._references[ask.answer.question_id]
        token = ask_number.set(ask.number)
        try:
            score = await self._judge.correctness.ascore(
                user_input=reference.question, reference=reference.answer, response=ask.answer.text
            )
        except Exception as problem:
            raise_if_cancelled(problem)
            if isinstance(problem, NotAskedError):
                self.stopped = str(problem)
            record = error_record(ANSWER_CORRECTNESS, problem)
            text = str(record.get(error_key(ANSWER_CORRECTNESS), self.stopped or problem))
            cost = None if isinstance(problem, GivenUpError) else cost_of(problem)
            judged = Judged(ask, None, text, cost)
        else:
            judged = Judged(ask, score.value, "", score.cost)
        finally:
            ask_number.reset(token)
        self.judged.append(judged)
        self._progress.judged(judged.error)


# --- the certificate ---


def certificate_of(
    judged: Sequence[Judged], judge: AnswerJudge, *, dataset: Path, questions: int, threshold: float, version: str
) -> dict[str, Any]:
    """Return the certificate as plain data, in the format of its file.

    ``questions`` is the number of questions with a reference answer. The judge calls an answer right if its
    ``answer_f1`` is at least ``threshold``.
    """
    first = [each for each in judged if each.ask.number == 1]
    order = {name: place for place, name in enumerate(KINDS)}
    first.sort(key=lambda each: order[each.ask.answer.kind])
    kinds = [_kind_record(name, first, threshold) for name in KINDS]
    return {
        "kind": CERTIFICATE_KIND,
        "version": version,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge": judge.correctness.describe(),
        "dataset": {"path": str(dataset), "sha256": hashlib.sha256(dataset.read_bytes()).hexdigest()},
        "questions": questions,
        "threshold": threshold,
        "caught": _share_record(_as_it_should(first, threshold, is_right=False)),
        "passed": _share_record(_as_it_should(first, threshold, is_right=True)),
        "kinds": [kind for kind in kinds if kind["answers"]],
        "not_made": [kind["name"] for kind in kinds if not kind["answers"]],
        **_self_agreement(judged, threshold),
        **{name: _bias(first, kind) for name, kind in _BIASES.items()},
        "answers": len(judged),
        "errors": sum(bool(each.error) for each in judged),
        COST: total_cost([each.cost for each in judged]),
        "cases": [
            {
                "kind": each.ask.answer.kind,
                "question_id": each.ask.answer.question_id,
                "answer": each.ask.answer.text,
                "ask": each.ask.number,
                ANSWER_F1: each.score,
                **({"error": each.error} if each.error else {}),
            }
            for each in sorted(judged, key=lambda each: (order[each.ask.answer.kind], each.ask.answer.question_id))
        ],
    }


def _as_it_should(judged: Iterable[Judged], threshold: float, *, is_right: bool | None) -> Share:
    """Return the share of wrong answers that are caught, or of right ones that pass, without answers with an error."""
    scored = [(KINDS[each.ask.answer.kind].is_right, each.score) for each in judged if each.score is not None]
    if is_right is not None:
        scored = [each for each in scored if each[0] is is_right]
    return Share(sum((score >= threshold) is right for right, score in scored), len(scored))


def _kind_record(name: str, first: Sequence[Judged], threshold: float) -> dict[str, Any]:
    of_kind = [each for each in first if each.ask.answer.kind == name]
    scores = [each.score for each in of_kind if each.score is not None]
    return {
        "name": name,
        "title": KINDS[name].title,
        "is_right": KINDS[name].is_right,
        "answers": len(of_kind),
        "errors": len(of_kind) - len(scores),
        **_share_record(_as_it_should(of_kind, threshold, is_right=None)),
        f"mean_{ANSWER_F1}": sum(scores) / len(scores) if scores else None,
    }


def _share_record(share: Share) -> dict[str, Any]:
    low, high = share.interval or (None, None)
    return {"count": share.count, "of": share.number, "share": share.value, "low": low, "high": high}


def _self_agreement(judged: Sequence[Judged], threshold: float) -> dict[str, Any]:
    """Return how many of the answers judged several times have equal verdicts, and the alpha of the verdicts."""
    verdicts: dict[AlteredAnswer, list[bool]] = {}
    for each in judged:
        if each.score is not None:
            verdicts.setdefault(each.ask.answer, []).append(each.score >= threshold)
    repeated = [said for said in verdicts.values() if len(said) > 1]
    agreed = Share(sum(len(set(said)) == 1 for said in repeated), len(repeated))
    alpha = krippendorffs_alpha(repeated) if repeated else None
    asks = max(map(len, repeated), default=1)
    return {"self_agreement": {**_share_record(agreed), "asks": asks, "alpha": alpha}}


def _bias(first: Sequence[Judged], kind: str) -> dict[str, Any] | None:
    """Return the mean difference of ``answer_f1`` due to form alone, with its 95 % interval; None without answers."""
    scores = {each.ask.answer: each.score for each in first}
    pairs = [(scores[one], scores[base]) for one, base in pairs_of(list(scores), kind)]
    differences = [one - base for one, base in pairs if one is not None and base is not None]
    if not differences:
        return None
    found = MeanDifference([[difference] for difference in differences], scale=1.0)
    interval = found.interval()
    return {
        "mean": found.difference,
        "low": None if interval is None else max(-1.0, interval.low),
        "high": None if interval is None else min(1.0, interval.high),
        "pairs": len(differences),
    }


def write_certificate(certificate: Mapping[str, Any], path: Path) -> None:
    """Write a certificate."""
    text = json.dumps(certificate, indent=2, ensure_ascii=False, allow_nan=False)
    replace_file(path, [text.encode("utf-8", "surrogatepass"), b"\n"])


def check_complete(certifying: Certifying) -> None:
    """Raise if a part of the certificate could not be judged, or if nothing was judged at all."""
    if certifying.stopped is not None:
        raise OptionError(
            f"the certificate is not complete: {certifying.stopped}",
            hint="What was judged is kept: run the same command again, with a larger --max-cost if that was the limit.",
        )
    if all(each.score is None for each in certifying.judged):
        problem = certifying.judged[0].error if certifying.judged else "there is none"
        raise NothingToCompareError(f"no answer could be judged: {problem}")
