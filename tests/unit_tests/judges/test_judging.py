import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest
from support.scripted_judges import ScriptedEmbeddings, ScriptedJudge

from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import ConfigError, JudgeError, OptionError
from graphrag_eval_lc.judges.answer_correctness import ClaimLists
from graphrag_eval_lc.judges.custom_functions import CustomFunction
from graphrag_eval_lc.judges.judging import Judges
from graphrag_eval_lc.judges.metrics import ContextVerdict, GeneratedQuestions, Statements
from graphrag_eval_lc.judges.model_interface import Answer, Asked

CONTEXTS = json.dumps([{"id": "d1", "text": "The tower is in Paris."}, {"id": "d2", "text": "Off topic."}])
REFERENCE_CONTEXTS = json.dumps([{"id": "d1", "text": "It is in Paris."}, {"id": "d9", "text": "It is tall."}])
TONE = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Rate.", "outputs": {"tone_score": "0 to 1"}}


class AnsweringJudge:
    """Answers according to the requested schema, since requests of a run arrive in any order."""

    name = "answering:judge"

    def __init__(self, *, fails: Sequence[str] = (), cost: float | None = 0.01) -> None:
        self._fails = fails
        self._cost = cost
        self.schemas: list[str] = []
        self.users: list[str] = []

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        self.schemas.append(schema.__name__)
        self.users.append(user)
        if schema.__name__ in self._fails:
            raise JudgeError("the model refused to answer")
        answers = {
            ClaimLists: {
                "reason": "One of two.",
                "true_positives": ["a"],
                "false_positives": ["b"],
                "false_negatives": [],
            },
            GeneratedQuestions: {"questions": ["Where?"] * 3, "noncommittal": 0},
            ContextVerdict: {"reason": "Says so.", "verdict": int("Off topic." not in user)},
            Statements: {"statements": [{"statement": "s", "reason": "r", "attributed": 1}]},
        }
        answer = answers.get(schema, {"tone_score": 0.5})
        return Asked(schema.model_validate(answer), self._cost)


def custom_length(question: dict[str, Any], response: dict[str, Any]) -> int:
    return len(response["actual_answer"])


EMBEDDINGS = ScriptedEmbeddings({"Where is the tower?": (1.0, 0.0), "Where?": (1.0, 0.0)})


def result(**changes: Any) -> dict[str, Any]:
    values = {
        "question_id": "q1",
        "question_text": "Where is the tower?",
        "reference_answer": "In Paris.",
        "reference_steps": [[{"name": "retrieval", "output": REFERENCE_CONTEXTS, "matches": "s1"}]],
        "actual_answer": "It is in Paris.",
        "actual_steps": [{"name": "retrieval", "id": "s1", "status": "success", "output": CONTEXTS}],
        "status": "success",
    }
    return {key: value for key, value in {**values, **changes}.items() if value is not ...}


async def judged(
    config: dict[str, Any] | None = None,
    record: dict[str, Any] | None = None,
    *,
    llm: Any = None,
    embeddings: Any = EMBEDDINGS,
    functions: Sequence[Any] = (),
    response: dict[str, Any] | None = None,
) -> dict[str, Any]:
    settings = load_config(config, has_llm=True, has_embeddings=True)
    judges = Judges.from_config(settings, llm=llm or AnsweringJudge(), embeddings=embeddings, functions=functions)
    assert judges is not None
    record = result() if record is None else record
    await judges.ajudge(record, record, record if response is None else response)
    return record


async def test_answer_metrics_have_graphrag_evals_keys() -> None:
    record = await judged()
    assert {key: value for key, value in record.items() if key not in result()} == {
        "answer_refused": False,
        "answer_true_positives": ["a"],
        "answer_false_positives": ["b"],
        "answer_false_negatives": [],
        "answer_reference_claims_count": 1,
        "answer_actual_claims_count": 2,
        "answer_matching_claims_count": 1,
        "answer_recall": 1.0,
        "answer_precision": 0.5,
        "answer_f1": pytest.approx(2 / 3),
        "answer_correctness_reason": "One of two.",
        "answer_correctness_cost": 0.01,
        "answer_relevance": pytest.approx(1.0),
        "answer_relevance_reason": record["answer_relevance_reason"],
        "answer_relevance_cost": pytest.approx(0.011),
    }


async def test_retrieval_step_has_its_metrics_with_costs() -> None:
    (step,) = (await judged())["actual_steps"]
    for prefix in ("retrieval_answer", "retrieval_context"):
        assert step[f"{prefix}_recall"] == 1.0
        assert step[f"{prefix}_recall_reason"]
        assert step[f"{prefix}_recall_cost"] == 0.01
        assert step[f"{prefix}_precision"] == 1.0
        assert step[f"{prefix}_precision_cost"] == 0.02
        assert step[f"{prefix}_f1"] == 1.0
        assert step[f"{prefix}_f1_cost"] == pytest.approx(0.03)
    assert step["retrieval_utilization"] == 1.0
    assert step["retrieval_utilization_cost"] == 0.02
    assert not any(key.endswith("_error") for key in step)


async def test_number_of_requests_is_as_documented() -> None:
    judge = AnsweringJudge()
    await judged(llm=judge)
    assert {schema: judge.schemas.count(schema) for schema in set(judge.schemas)} == {
        "ClaimLists": 1,
        "GeneratedQuestions": 1,
        "Statements": 2,
        "ContextVerdict": 6,
    }


async def test_reference_contexts_are_sent_line_by_line() -> None:
    judge = AnsweringJudge()
    await judged({"judges": {"metrics": ["retrieval_context"]}}, llm=judge)
    assert all("It is in Paris.\nIt is tall." in user for user in judge.users)


async def test_failed_question_has_its_steps_judged_but_not_its_answer() -> None:
    record = await judged(record=result(status="error", error="stopped"))
    assert not any(key.startswith("answer_") for key in record)
    (step,) = record["actual_steps"]
    assert {"retrieval_answer_f1", "retrieval_context_f1"} <= step.keys()
    assert "retrieval_utilization" not in step


async def test_without_answers_only_metrics_that_need_none_are_judged() -> None:
    record = await judged(record=result(reference_answer=..., reference_steps=...))
    assert "answer_f1" not in record
    assert "answer_relevance" in record
    (step,) = record["actual_steps"]
    assert {key for key in step if key.startswith("retrieval_")} == {
        "retrieval_utilization",
        "retrieval_utilization_reason",
        "retrieval_utilization_cost",
    }
    assert "answer_relevance" not in await judged(record=result(actual_answer=None))


async def test_contexts_are_compared_with_the_reference_only_if_the_step_matched() -> None:
    steps = [[{"name": "retrieval", "output": REFERENCE_CONTEXTS}]]
    (step,) = (await judged(record=result(reference_steps=steps)))["actual_steps"]
    assert "retrieval_context_recall" not in step
    ids_only = [[{"name": "retrieval", "output": '[{"id": "d1"}]', "matches": "s1"}]]
    (step,) = (await judged(record=result(reference_steps=ids_only)))["actual_steps"]
    assert "retrieval_context_recall" not in step
    assert "retrieval_context_recall_error" not in step


async def test_step_names_are_mapped_by_the_config() -> None:
    steps = [
        {"name": "search", "id": "s1", "status": "success", "output": CONTEXTS},
        {"name": "retrieval", "id": "s2", "status": "error", "error": "timeout"},
        {"name": "sparql_query", "id": "s3", "status": "success", "output": CONTEXTS},
    ]
    record = await judged({"steps": {"names": {"search": "retrieval"}}}, result(actual_steps=steps))
    assert [("retrieval_answer_f1" in step, "retrieval_context_f1" in step) for step in record["actual_steps"]] == [
        (True, True),
        (False, False),
        (False, False),
    ]


@pytest.mark.parametrize("output", ["no JSON", '{"id": "d1"}', '["text"]', None])
async def test_output_without_contexts_is_an_error_without_a_request(output: str | None) -> None:
    judge = AnsweringJudge()
    step = {"name": "retrieval", "id": "s1", "status": "success", "output": output}
    record = await judged({"judges": {"metrics": ["retrieval_answer"]}}, result(actual_steps=[step]), llm=judge)
    (step,) = record["actual_steps"]
    assert "not a JSON array of objects" in str(step["retrieval_answer_recall_error"])
    assert "retrieval_answer_precision_error" in step
    assert judge.schemas == []


async def test_failure_of_one_judge_does_not_affect_the_others() -> None:
    record = await judged(llm=AnsweringJudge(fails=["ClaimLists", "Statements"]))
    assert record["answer_correctness_error"] == record["answer_eval_error"] == "the model refused to answer."
    assert "answer_f1" not in record
    assert "answer_relevance" in record
    (step,) = record["actual_steps"]
    assert step["retrieval_answer_recall_error"] == "the model refused to answer."
    assert step["retrieval_answer_precision"] == 1.0
    assert "retrieval_answer_f1" not in step


async def test_no_exception_of_a_model_stops_the_run() -> None:
    class BrokenJudge(AnsweringJudge):
        async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
            raise RuntimeError("api_key=qwertz12345 is wrong")

    record = await judged({"custom_evaluations": [TONE]}, llm=BrokenJudge())
    for key in ("answer_correctness_error", "answer_relevance_error", "tone_error"):
        assert record[key] == "RuntimeError: api_key=*** is wrong"
    assert record["tone_score"] is None


async def test_cancelled_error_from_a_model_is_a_failure() -> None:
    class CancellingJudge(AnsweringJudge):
        async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
            raise asyncio.CancelledError("the client gave up")

    record = await judged(llm=CancellingJudge())
    assert record["answer_correctness_error"] == "CancelledError: the client gave up"


async def test_judged_keys_of_an_earlier_evaluation_are_replaced() -> None:
    stale = result(answer_f1=0.1, answer_correctness_error="old", answer_relevance=0.2)
    stale["actual_steps"][0]["retrieval_answer_f1"] = 0.3
    record = await judged(record=stale, llm=AnsweringJudge(fails=["ClaimLists", "Statements", "GeneratedQuestions"]))
    assert "answer_f1" not in record
    assert "answer_relevance" not in record
    assert record["answer_correctness_error"] != "old"
    assert "retrieval_answer_f1" not in record["actual_steps"][0]


async def test_custom_evaluations_and_functions_are_combined() -> None:
    async def clash(question: dict[str, Any], response: dict[str, Any]) -> dict[str, float]:
        return {"tone_score": 1.0}

    record = await judged({"custom_evaluations": [TONE]}, functions=[custom_length, clash])
    assert record["tone_score"] == 0.5
    assert record["tone_cost"] == 0.01
    assert record["custom_length"] == 15
    assert record["clash_error"] == "the key tone_score is given twice"


async def test_numeric_values_of_functions_are_listed_for_aggregation() -> None:
    def grade(question: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
        return {"share": 0.5, "is_short": True, "class": "good", "unknown": None}

    record = await judged(record=result(custom_metrics=["of old"]), functions=[grade])
    assert record["custom_metrics"] == ["share", "is_short"]


async def test_malformed_response_does_not_stop_the_run() -> None:
    settings = load_config({"custom_evaluations": [TONE]}, has_llm=True)
    judges = Judges.from_config(settings, llm=AnsweringJudge(), functions=[custom_length])
    assert judges is not None
    record = result(status="error", error="cannot be used", actual_answer=..., actual_steps=[])
    await judges.ajudge(record, record, "no response")  # type: ignore[arg-type]
    assert record["tone_error"] == "Actual output missing key 'actual_answer'"


async def test_function_is_not_called_without_a_response() -> None:
    record = await judged(record=result(status="error", actual_answer=...), functions=[custom_length], response={})
    assert "custom_length" not in record
    assert "custom_length_error" not in record


@pytest.mark.parametrize(
    ("config", "metrics"),
    [
        ({}, ["answer_correctness", "retrieval_answer", "retrieval_context", "retrieval_utilization"]),
        ({"judges": {"metrics": ["retrieval_answer"]}}, ["retrieval_answer"]),
        ({"judges": {"metrics": []}, "custom_evaluations": [TONE]}, []),
        (
            {
                "answer_correctness": {"enabled": False},
                "judges": {"metrics": ["answer_correctness", "retrieval_answer"]},
            },
            ["retrieval_answer"],
        ),
    ],
)
def test_metrics_are_selected_by_the_config(config: dict[str, Any], metrics: list[str]) -> None:
    judges = Judges.from_config(load_config(config, has_llm=True), llm=AnsweringJudge())
    assert judges is not None
    assert judges.describe()["metrics"] == metrics


def test_answer_relevance_is_on_with_an_embedding_model_unless_disabled() -> None:
    def metrics(config: dict[str, Any]) -> list[str]:
        judges = Judges.from_config(load_config(config), llm=AnsweringJudge(), embeddings=EMBEDDINGS)
        assert judges is not None
        return list(judges.describe()["metrics"])

    assert "answer_relevance" in metrics({})
    assert "answer_relevance" not in metrics({"answer_relevance": {"enabled": False}})


def test_with_nothing_to_judge_there_are_no_judges() -> None:
    assert Judges.from_config(load_config()) is None
    assert Judges.from_config(load_config({"judges": {"metrics": []}}), llm=AnsweringJudge()) is None


async def test_functions_alone_need_no_model() -> None:
    def length(question: dict[str, Any], response: dict[str, Any]) -> int:
        return 1

    judges = Judges.from_config(load_config(), functions=[length])
    assert judges is not None
    assert judges.describe() == {"functions": ["length"]}
    record = result()
    await judges.ajudge(record, record, record)
    assert record == {**result(), "length": 1, "custom_metrics": ["length"]}


def test_description_names_models_and_prompts() -> None:
    settings = load_config({"custom_evaluations": [TONE]}, has_llm=True)
    judges = Judges.from_config(settings, llm=AnsweringJudge(), embeddings=EMBEDDINGS)
    assert judges is not None
    described = judges.describe()
    assert (described["engine"], described["generation"], described["embedding"]) == (
        "native",
        "answering:judge",
        "scripted:embeddings",
    )
    assert described["custom_evaluations"] == ["tone"]
    assert len(described["prompts"]["custom_evaluation"]) == 64
    json.dumps(described)


def test_function_cannot_take_the_name_of_a_custom_evaluation() -> None:
    def tone(question: Any, response: Any) -> float:
        return 1.0

    settings = load_config({"custom_evaluations": [TONE]}, has_llm=True)
    with pytest.raises(OptionError, match="the function tone has a key of a custom evaluation"):
        Judges.from_config(settings, llm=AnsweringJudge(), functions=[tone])


def test_missing_variable_is_an_error_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ABSENT_OF_MODEL", raising=False)
    settings = load_config({"llm": {"generation": {"api_key": "${ABSENT_OF_MODEL}"}}})
    with pytest.raises(ConfigError, match=r"key llm.generation.api_key: the environment variable ABSENT_OF_MODEL"):
        Judges.from_config(settings)


async def test_metrics_of_a_result_are_requested_concurrently() -> None:
    arrived = asyncio.Event()

    class WaitingJudge(AnsweringJudge):
        async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
            asked = await super().aask(system, user, schema)
            if len(self.schemas) == 11:
                arrived.set()
            await asyncio.wait_for(arrived.wait(), 10)
            return asked

    record = await judged({"custom_evaluations": [TONE]}, llm=WaitingJudge())
    assert not any(key.endswith("_error") for key in record)


@pytest.mark.parametrize(("results", "most"), [(1, 3), (4, 5)])
async def test_functions_of_a_result_run_concurrently_within_the_limit(results: int, most: int) -> None:
    running = [0, 0]

    async def slow(question: dict[str, Any], response: dict[str, Any]) -> float:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.01)
        running[0] -= 1
        return 0.5

    functions = [CustomFunction(slow, name) for name in ("one", "two", "three")]
    judges = Judges.from_config(load_config({"judges": {"max_concurrency": 5}}), functions=functions)
    assert judges is not None
    await asyncio.gather(*(judges.ajudge({}, {"id": "q1"}, {"actual_answer": "4"}) for _ in range(results)))
    assert running == [0, most]


async def test_models_from_the_config_are_closed_but_passed_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class ClosingJudge(AnsweringJudge):
        is_closed = False

        async def aclose(self) -> None:
            self.is_closed = True

    passed = ClosingJudge()
    judges = Judges.from_config(load_config(), llm=passed)
    assert judges is not None
    await judges.aclose()
    assert not passed.is_closed
    created = Judges.from_config(
        load_config({"llm": {"generation": {"api_key": "abc"}, "embedding": {"api_key": "abc"}}})
    )
    assert created is not None
    await created.aclose()


@pytest.mark.parametrize("lacks", [set(), {"json_schema"}, {"json_schema", "tools"}])
async def test_config_alone_judges_over_http(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, lacks: set[str]
) -> None:
    monkeypatch.setenv("KEY_OF_STUB", "qwertz12345")
    openai_stub.lacks = lacks
    endpoint = {"base_url": openai_stub.base_url, "api_key": "${KEY_OF_STUB}"}

    def answer(request: StubRequest) -> dict[str, Any]:
        claims = {"true_positives": ["a"], "false_positives": [], "false_negatives": [], "reason": "Agrees."}
        answers = {
            "tone_score": {"tone_score": 0.5},
            "true_positives": claims,
            "noncommittal": {"questions": ["Where?"] * 3, "noncommittal": 0},
            "attributed": {"statements": [{"statement": "s", "reason": "r", "attributed": 1}]},
        }
        recorded = request.system + request.user
        return next((value for key, value in answers.items() if key in recorded), {"reason": "r", "verdict": 1})

    openai_stub.answer = answer
    config = load_config(
        {
            "llm": {"generation": endpoint, "embedding": endpoint},
            "custom_evaluations": [TONE],
            "judges": {"max_concurrency": 2},
            "prices": {"gpt-4o-mini": {"input": 1.0, "output": 1.0}},
        }
    )
    judges = Judges.from_config(config)
    assert judges is not None
    record = result()
    await judges.ajudge(record, record, record)
    await judges.aclose()
    assert not [key for key in (*record, *record["actual_steps"][0]) if key.endswith("_error")]
    assert record["answer_f1"] == 1.0
    assert record["answer_correctness_cost"] > 0.0
    assert record["tone_score"] == 0.5
    assert record["actual_steps"][0]["retrieval_context_f1"] == 1.0
    assert openai_stub.most_in_flight <= 2
    assert {request.headers["authorization"] for request in openai_stub.requests} == {"Bearer qwertz12345"}


async def test_steps_of_a_named_tool_are_judged_as_retrieval() -> None:
    record = result(
        reference_steps=[[{"name": "search_docs", "output": REFERENCE_CONTEXTS, "matches": "s1"}]],
        actual_steps=[{"name": "search_docs", "id": "s1", "status": "success", "output": CONTEXTS}],
    )
    step = (await judged({"retrieval": {"steps": ["search_docs"]}}, record))["actual_steps"][0]
    assert {"retrieval_answer_f1", "retrieval_context_f1", "retrieval_utilization"} <= step.keys()


def test_cost_budget_needs_models_that_count_requests() -> None:
    with pytest.raises(OptionError, match=r"max_cost.*scripted:judge cannot be counted.*Leave max_cost out"):
        Judges.from_config(load_config({}), llm=ScriptedJudge([]), budget=Budget(1.0))
