"""Telling refusals from answers."""

import json
import os
from pathlib import Path

import pytest

from graphrag_eval_lc.judges.answer_forms import content_text
from graphrag_eval_lc.judges.claim_check import is_refusal

REFUSALS = """\
I couldn’t find any resource with mRID `b0400312` in the current dataset.
Sorry, I was unable to determine the voltage of this line.
There are multiple terminals named **T1** in the dataset, so I can’t tell which one you mean.
I need the IRI of the terminal referred to as **T1** before I can list related islands.
Which T1 do you mean?
Please specify which transformer you mean.
There is no such entity in the graph.
There is no substation named ATLANTIS.
OSLO T9 does not exist.
The substation could not be found.
I don't have enough information to answer.
No results were found.
Ich konnte die Station leider nicht finden.
"""
ANSWERS = """\
OSLO is in NO1.
No, no DC link joins NO1 and SE3.
OSLO has no wind units.
None.
There are 3 transformers in OSLO; I could name their makers too.
NO5 has 4 substations: AURLAND, BERGEN, MODALEN, SOGNDAL.
The capacity is not known to change before 2030.
"""


@pytest.mark.parametrize(
    ("text", "refuses"),
    [(text, True) for text in REFUSALS.splitlines()] + [(text, False) for text in ANSWERS.splitlines()],
)
def test_refusal_is_recognised_by_its_wording(text: str, refuses: bool) -> None:
    assert is_refusal(text) is refuses


def test_only_the_first_paragraph_counts() -> None:
    assert not is_refusal("OSLO has 3 transformers:\n\n- OSLO T1\n\nI could not find their makers.")
    assert not is_refusal("It has these parts:\n- T1\n- T2, which I could not identify")


def test_of_250_real_answers_28_refuse() -> None:
    folder = Path(os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR", "missing"), "real_runs")
    if not folder.is_dir():
        pytest.skip("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set")
    lines = [line for path in sorted(folder.glob("*/responses.jsonl")) for line in path.read_text("utf-8").splitlines()]
    answers = [json.loads(line)["actual_answer"] for line in lines]
    texts = [answer if isinstance(answer, str) else content_text(answer) for answer in answers]
    assert (len(texts), sum(map(is_refusal, texts))) == (250, 28)
