"""How often answer checks without a model are correct on 190 answers of a real agent.

Run it as ``python benchmarks/answer_checks.py``. It needs the recorded run ``real_runs/substations`` in the folder of
``GRAPHRAG_EVAL_LC_CONFORMANCE_DIR`` and does nothing without it. What an answer must contain is inferred from the
required columns of the reference rows (``answer_checks: {infer: required_columns}``). The benchmark counts the
questions that this applies to, prints each answer that is not exact with what it lacks, for review, and checks the
answers of 15 questions of other templates against each question: how many pass? The exit code is 1 if a goal is missed.
"""

import os
import random
import sys
from pathlib import Path
from typing import Any

from graphrag_eval_lc import load_dataset, load_responses, run_evaluation
from graphrag_eval_lc.records import Response, Template

OTHERS, LEAST_RIGHT, MOST_PASSING = 15, 0.92, 10 / 2460
CONFIG: dict[str, Any] = {"answer_checks": {"infer": "required_columns"}, "graph": {"explain": False}}
# Answers that reviewers found incomplete or with extra content; a check that rejects any other answer is wrong.
RIGHT_VERDICTS = frozenset(
    {
        "question_1ab20c1ce27a2438859e524165ec8817",
        "question_80d90fb1551491c6450493ad900961c5",
        "question_b0d581731bd2f2eec631149ad66f70c0",
        "question_5fec21e14a17d82cf823fe004f9af91d",
        "question_3c1322c3d81f21ccd9f6fb513f2df6cf",
        "question_c3df00b68e7bbaccf65a34762e71403c",
        "question_3c8ef54d3d5dc459a8bf31061b080137",
        "question_82783aec79be0212067a45fd43159e9a",
        "question_231484d5d2ee144cf30c3806eec23055",
        "question_1407f7ed285b668f13e2e0a5e09145e6",
        "question_8b668c7fb832f2287865dcbd1f1268a1",
        "question_4b27c86ccf8df392121fbafc0a8c00e4",
        "question_09693d2cb1899ef1d0945817c16fbfa6",
        "question_2d276478ac05b7bac8321f15b5b5d0ef",
        "question_0c19e79860f43ba60d4a414670118c1a",
        "question_04c69fc70ebb1a61495ad894c83e6e25",
        "question_1012f0a09033b038f3b68b7c30cf82de",
        "question_c0bc134f3f864eed959344cf2ec86086",
        "question_069561dbb399f6f7f77876b1ad86691f",
        "question_ce60a80ab066823e24a12a9c67591d00",
        "question_4eac63aff0c3834e6ef24bb62a7a9b5f",
        "question_24e8e3f67d20dff26af2769c63ea1256",
        "question_71897fb11c6ed72d66a36b1257f56be3",
        "question_d4a008c4b46fe00ec36274b40daba156",
        "question_796c27c2dea8dc69837825de398ce40e",
        "question_75067c0210f42edfe36dd6ba219f7f89",
        "question_68078138455045a9110143c26430ddf1",
    }
)


def main() -> int:
    """Measure, print, and return the exit code."""
    folder = os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR")
    if not folder:
        print("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set: there are no recorded runs to measure.")
        return 0
    run = Path(folder) / "real_runs" / "substations"
    dataset, responses = load_dataset(run / "reference.yaml"), load_responses(run / "responses.jsonl")
    results: list[dict[str, Any]] = [dict(each) for each in run_evaluation(dataset, responses, CONFIG)]
    checked = [each for each in results if each.get("answer_exact") is not None]
    wrong = [each for each in checked if each["answer_exact"] == 0]
    for each in wrong:
        verdict = "right" if each["question_id"] in RIGHT_VERDICTS else "WRONG"
        print(f"{verdict} {each['question_id']} (steps_score {each['steps_score']:g}): {each['answer_exact_reason']}")
        print(f"    {each['question_text']}\n    {' '.join(str(each['actual_answer']).split())[:300]}")
    draw, passing, tried = random.Random(1), 0, 0
    questions = {
        question["id"]: (template, question) for template in dataset for question in template["questions"] or ()
    }
    for each in checked:
        template, question = questions[each["question_id"]]
        others = [other for other in results if other["template_id"] != each["template_id"]]
        for other in draw.sample(others, OTHERS):
            response: Response = {**responses[question["id"]], "actual_answer": other["actual_answer"]}
            one: Template = {"template_id": template["template_id"], "questions": [question]}
            [result] = run_evaluation([one], [response], CONFIG)
            tried, passing = tried + 1, passing + (result.get("answer_exact") == 1)
            if result.get("answer_exact") == 1:
                print("  passes:", question["question_text"], "|", " ".join(str(other["actual_answer"]).split())[:120])
    right = sum(each["question_id"] in RIGHT_VERDICTS for each in wrong)
    print(f"applicable to {len(checked)} of {len(results)}; exact {len(checked) - len(wrong)}; not exact {len(wrong)}")
    print(f"verdicts `not exact` that are right: {right} of {len(wrong)} (goal: {LEAST_RIGHT:.0%})")
    print(f"other templates' answers that pass: {passing} of {tried} (goal: {MOST_PASSING:.2%})")
    return int(right < LEAST_RIGHT * len(wrong) or passing > MOST_PASSING * tried)


if __name__ == "__main__":
    sys.exit(main())
