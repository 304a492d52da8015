"""Questions, an agent and judge answers for whole runs: one retrieval step with two contexts per question."""

import json
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from support.openai_stub import Json, OpenAIStub, StubRequest

CONTEXTS = json.dumps([{"id": "d1", "text": "The tower is in Paris."}, {"id": "d2", "text": "It is of iron."}])

# Per question: correctness, relevance, recall twice, precision of two contexts, utilization of two contexts.
CHAT_REQUESTS = 10
REQUESTS = CHAT_REQUESTS + 1
ERRORS = ("answer_correctness_error", "answer_eval_error", "answer_relevance_error")
STEP_ERRORS = (
    "retrieval_answer_recall_error",
    "retrieval_answer_precision_error",
    "retrieval_context_recall_error",
    "retrieval_context_precision_error",
    "retrieval_utilization_error",
)


def judged_dataset(questions: int = 2) -> list[Any]:
    """Return a dataset in which each question has a reference answer and reference contexts."""
    return [
        {
            "template_id": "t",
            "questions": [
                {
                    "id": f"q{number}",
                    "question_text": f"Where is tower {number}?",
                    "reference_answer": f"Tower {number} is in Paris.",
                    "reference_steps": [[{"name": "retrieval", "output": CONTEXTS}]],
                }
                for number in range(questions)
            ],
        }
    ]


def judged_responses(questions: int = 2) -> list[Any]:
    """Return a response to each question of ``judged_dataset``, as the agent would."""
    step = {"name": "retrieval", "args": {}, "id": "s", "status": "success", "output": CONTEXTS}
    return [
        {"question_id": f"q{number}", "actual_answer": f"Tower {number}: Paris.", "actual_steps": [step]}
        for number in range(questions)
    ]


@tool
async def retrieval(query: str) -> str:
    """Find documents."""
    return CONTEXTS


async def agent(question: str) -> str:
    await retrieval.ainvoke({"query": question})
    return f"It is in Paris, to answer {question}"


async def asking_agent(question: str) -> str:
    """Call a model that uses 1,000 input and 100 output tokens."""
    usage: Any = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
    message = AIMessage("Paris.", usage_metadata=usage, response_metadata={"model_name": "agents-own"})
    return str((await GenericFakeChatModel(messages=iter([message])).ainvoke(question)).content)


def config_of(stub: OpenAIStub, **sections: Any) -> Json:
    """Return a config whose models are the stub's, without retries."""
    endpoint = {"base_url": stub.base_url, "api_key": "k"}
    judges = {"max_retries": 0, **sections.pop("judges", {})}
    return {"llm": {"generation": dict(endpoint), "embedding": dict(endpoint)}, "judges": judges, **sections}


def judgement(request: StubRequest) -> Json:
    """Return the stub's answer to each metric."""
    properties = (request.schema or {}).get("properties", {})
    if "true_positives" in properties:
        return {"reason": "so", "true_positives": ["a"], "false_positives": ["b"], "false_negatives": []}
    if "statements" in properties:
        attributed = [{"statement": f"s{value}", "reason": "so", "attributed": value} for value in (0, 1)]
        return {"statements": attributed}
    if "verdict" in properties:
        return {"reason": "so", "verdict": 1}
    if "noncommittal" in properties:
        return {"questions": ["Where?"] * 3, "noncommittal": 0}
    return dict.fromkeys(properties, 0.5)
