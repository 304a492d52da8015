"""What the registry does not declare for each metric: its formula, and an example that the tests run."""

from typing import Final, NamedTuple


class Facts(NamedTuple):
    """A metric's formula and example.

    Attributes:
        formula: How it is computed, in Markdown.
        code: An expression in Python that computes it, with names from ``PREPARED``.
        value: Its value, as Python shows it; numbers are rounded to three digits.
    """

    formula: str
    code: str = ""
    value: str = ""


# The set-up shared by all examples.
PREPARED: Final = """\
from graphrag_eval_lc import compute_aggregates, run_evaluation
from graphrag_eval_lc.metrics import (
    average_precision,
    f1,
    hit_rate,
    ndcg,
    precision,
    r_precision,
    recall,
    recall_at_k,
    reciprocal_rank,
    text_context_precision,
    text_context_recall,
)


def scored(reference_steps, actual_steps, config=None):
    question = {"id": "q", "question_text": "?", "reference_steps": reference_steps}
    steps = [{"id": str(n), "args": {}, "status": "success", **step} for n, step in enumerate(actual_steps)]
    response = {"question_id": "q", "actual_steps": steps}
    return run_evaluation([{"template_id": "t", "questions": [question]}], [response], config)[0]


def step(name, output):
    return {"name": name, "args": {}, "output": output}


def answered(answer, *outputs, **more):
    question = {"id": "q", "question_text": "?", "reference_steps": [[step("sql", outputs[-1])]], **more}
    steps = [{"id": str(n), "status": "success", **step("sql", output)} for n, output in enumerate(outputs)]
    response = {"question_id": "q", "actual_steps": steps, "actual_answer": answer}
    config = {"answer_grounding": {"enabled": True}, "steps": {"kinds": {"sql": "rows"}}}
    return run_evaluation([{"template_id": "t", "questions": [question]}], [response], config)[0]


PRICES = '[{"zone": "NO1", "price": 107.41}, {"zone": "NO2", "price": 98.05}]'
GRADED = {"steps": {"grading": "graded"}}
relevant, retrieved = {"a", "b", "c"}, ["a", "x", "b"]
"""

_CLAIMS = (
    "the judge lists the claims that agree (TP), those of the answer alone (FP) and those of the reference alone (FN). "
)
_TWO_OF_THREE = '[[step("a", "1"), step("b", "2"), step("c", "3")]], [step("a", "1"), step("c", "3"), step("x", "9")]'

FACTS: Final = {
    "steps_score": Facts(
        "the sum of the match scores of the reference steps in the last group ÷ their number; each actual step counts "
        "once, and of all assignments the best is taken. With `steps: {scoring: all_groups}` the mean over the groups, "
        "with `grading: graded` `steps_f1`",
        f'scored({_TWO_OF_THREE})["steps_score"]',
        "0.667",
    ),
    "steps_score_upper": Facts("`steps_score` if each undecided reference step counts as matched"),
    "steps_recall": Facts(
        "the sum of the grades of all reference steps ÷ their number",
        f'scored({_TWO_OF_THREE}, GRADED)["steps_recall"]',
        "0.667",
    ),
    "steps_precision": Facts(
        "the sum of the grades ÷ the number of successful calls whose names could match some reference step; failed "
        "calls and other tools do not count",
        'scored([[step("a", "1")]], [step("a", "0"), step("a", "1")], GRADED)["steps_precision"]',
        "0.5",
    ),
    "steps_f1": Facts(
        "2 · recall · precision ÷ (recall + precision)",
        'scored([[step("a", "1")]], [step("a", "0"), step("a", "1")], GRADED)["steps_f1"]',
        "0.667",
    ),
    "steps_order": Facts(
        "of the pairs of matched steps from different groups those in the order of the groups ÷ all such pairs; 1 "
        "without a pair",
        'scored([[step(n, n)] for n in "abc"], [step(n, n) for n in "bac"], GRADED)["steps_order"]',
        "0.667",
    ),
    "answer_grounded": Facts(
        "the values of the answer that some successful step returned ÷ those that count: IRIs, dates, names that rows "
        "have or that are in quotation marks, and numbers of three digits or more. Values of the question, and those "
        "in a sentence that denies or estimates something, do not count",
        'answered("NO1 costs 107.41, NO2 costs 98.50.", PRICES)["answer_grounded"]',
        "0.75",
    ),
    "answer_ungrounded": Facts(
        "the number of values that count and that no successful step returned",
        'answered("NO1 costs 107.41, NO2 costs 98.50.", PRICES)["answer_ungrounded"]',
        "1",
    ),
    "answer_lines_in_one_row": Facts(
        "the list items, table rows and parts of enumerations of which each two values are in one row of a result that "
        "has both ÷ those of which that can be said; exchanged values are in no such row",
        'answered("- NO1: 98.05\\n- NO2: 98.05", PRICES)["answer_lines_in_one_row"]',
        "0.5",
    ),
    "answer_row_coverage": Facts(
        "the rows of the last matched query that the answer mentions ÷ all; 1 if it says that there are more, or how "
        "many there are",
        'answered("NO1 costs 107.41.", PRICES)["answer_row_coverage"]',
        "0.5",
    ),
    "answer_exact": Facts(
        "1 if the answer has all entities, numbers and dates that it must have, nothing else of their columns, the "
        "right yes or no, the right order, and says that there is none if there is none; else 0",
        'answered("It is NO1.", PRICES, reference_entities=["NO1"], reference_numbers=[107.41])["answer_exact"]',
        "0.0",
    ),
    **{
        f"answer_{kind}_{measure}": Facts(
            formula, f'answered({answer!r}, PRICES, {given})["answer_{kind}_{measure}"]', value
        )
        for kind, answer, given in (
            ("entities", "They are NO1 and NO2.", 'reference_entities=["NO1"]'),
            ("numbers", "It costs 107.4 and 98.05.", "reference_numbers=[107.41]"),
            ("dates", "On 2 May 2024.", 'reference_dates=["2024-05-02"]'),
        )
        for measure, formula, value in (
            (
                "precision",
                f"the expected {kind} in the answer ÷ these and the others of the same columns in it",
                "1.0" if kind == "dates" else "0.5",
            ),
            ("recall", f"the expected {kind} in the answer ÷ the expected ones", "1.0"),
            ("f1", "2 · recall · precision ÷ (recall + precision) of the two", "1.0" if kind == "dates" else "0.667"),
        )
    },
    "answer_recall": Facts(_CLAIMS + "TP ÷ (TP + FN), in claims of the reference answer. With TP 2 and FN 1: 0.667"),
    "answer_precision": Facts(_CLAIMS + "TP ÷ (TP + FP), in claims of the answer. With TP 2 and FP 2: 0.5"),
    "answer_f1": Facts("2 · recall · precision ÷ (recall + precision) of the two. Of 0.667 and 0.5: 0.571"),
    "answer_correctness_agreement": Facts(
        "the mean over the claims of both answers of the votes for what the majority says of the claim ÷ its votes; "
        "only with `judges: {votes: …}` or `voters`"
    ),
    "answer_refused": Facts(
        "1 if the first paragraph of the answer says that nothing was found, that it is not known, that there is no "
        "such thing, or asks back; else 0. Found by its words in English and German, without a model"
    ),
    "answer_refusal_right": Facts(
        "of an answer that refuses: 1 if the reference answer refuses too, else 0; absent if the answer does not refuse"
    ),
    "answer_relevance_baseline": Facts(
        "the mean cosine of the 3 generated questions and the dataset's other questions, at most 200 of them; an "
        "`answer_relevance` near it says nothing"
    ),
    "answer_relevance_rank": Facts(
        "1 + the number of the other questions that are nearer to the generated questions than the question asked"
    ),
    "answer_relevance": Facts(
        "a model writes 3 questions that the answer replies to; the mean cosine of their embeddings and that of the "
        "question asked; 0 if the answer is noncommittal"
    ),
    "retrieval_answer_precision": Facts(
        "Σ(precision at i · verdict i) ÷ Σ verdict i, over the contexts in their order; a verdict is 1 if a model "
        "finds the context of use for the reference answer. Verdicts 1, 0, 1: (1 + 2/3) ÷ 2 = 0.833"
    ),
    "retrieval_answer_recall": Facts(
        "the statements of the reference answer that a model finds in the contexts ÷ all its statements. 2 of 3: 0.667"
    ),
    "retrieval_answer_f1": Facts("2 · recall · precision ÷ (recall + precision) of the two"),
    "retrieval_context_precision": Facts(
        "as `retrieval_answer_precision`, with the texts of the reference step instead of the reference answer"
    ),
    "retrieval_context_recall": Facts(
        "as `retrieval_answer_recall`, of the statements in the texts of the reference step"
    ),
    "retrieval_context_f1": Facts("2 · recall · precision ÷ (recall + precision) of the two"),
    "retrieval_utilization": Facts("as `retrieval_answer_precision`, with the agent's own answer"),
    "retrieval_ids_precision": Facts(
        "relevant ids among those retrieved ÷ those retrieved; with a cut-off ÷ k",
        "precision(relevant, retrieved)",
        "0.667",
    ),
    "retrieval_ids_recall": Facts(
        "relevant ids among those retrieved ÷ relevant ids", "recall(relevant, retrieved)", "0.667"
    ),
    "retrieval_ids_recall_capped": Facts(
        "relevant ids among the first k ÷ min(k, relevant ids)", "recall_at_k(relevant, retrieved, 2)", "0.5"
    ),
    "retrieval_ids_f1": Facts("2 · recall · precision ÷ (recall + precision)", "f1(relevant, retrieved)", "0.667"),
    "retrieval_ids_reciprocal_rank": Facts(
        "1 ÷ the rank of the first relevant id; 0 without one", 'reciprocal_rank(relevant, ["x", "b"])', "0.5"
    ),
    "retrieval_ids_average_precision": Facts(
        "Σ(precision at the rank of each relevant id that was retrieved) ÷ relevant ids",
        "average_precision(relevant, retrieved)",
        "0.556",
    ),
    "retrieval_ids_ndcg": Facts(
        "Σ(gain ÷ log₂(rank + 1)) ÷ the same sum of the best order", "ndcg(relevant, retrieved)", "0.704"
    ),
    "retrieval_ids_hit_rate": Facts("1 if a relevant id was retrieved, else 0", "hit_rate(relevant, retrieved)", "1.0"),
    "retrieval_ids_r_precision": Facts(
        "relevant ids among the first R ÷ R, where R is the number of relevant ids",
        "r_precision(relevant, retrieved)",
        "0.667",
    ),
    "retrieval_text_precision": Facts(
        "Σ(precision at i · verdict i) ÷ Σ verdict i; a retrieved text counts as relevant if it is at least as "
        "similar to some reference text as `retrieval.text.threshold`",
        'text_context_precision(["Oslo is a city", "9876543210"], ["Oslo is a city."])',
        "1.0",
    ),
    "retrieval_text_recall": Facts(
        "reference texts that are so similar to some retrieved text ÷ reference texts",
        'text_context_recall(["Oslo is a city"], ["Oslo is a city.", "9876543210"])',
        "0.5",
    ),
    "retrieval_text_f1": Facts("2 · recall · precision ÷ (recall + precision) of the two"),
    "input_tokens": Facts(
        "the sum over the agent's model calls, as the provider reports them; absent if one is unknown"
    ),
    "output_tokens": Facts("likewise, of what the models wrote"),
    "total_tokens": Facts("`input_tokens` + `output_tokens`"),
    "elapsed_sec": Facts("from the question to the answer, by a clock that never goes back"),
    "agent_cost": Facts("Σ over model calls and kinds of tokens: tokens · USD per token; absent if one is unknown"),
    "judges_cost": Facts(
        "the same over the requests of judges; an answer from the cache counts with what it cost when it was asked"
    ),
    "cost": Facts("`agent_cost` + `judges_cost`"),
    "retrieval_missing": Facts("reference steps of retrieval that no step fulfils"),
    "retrieval_text_missing": Facts("those of them that have texts"),
    "undecided": Facts("reference steps whose comparison reached its bound, or ended at an output that is cut"),
    "outputs_cut": Facts("outputs of steps that end before their end"),
}
