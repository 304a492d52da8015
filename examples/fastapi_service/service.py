"""A service that answers questions, and records each answer with its tool calls in ``responses.jsonl``."""

import json
from pathlib import Path
from threading import Lock
from uuid import uuid4

from agent import agent
from fastapi import FastAPI
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from graphrag_eval_lc import GraphRAGEvalCallbackHandler

RESPONSES = Path("responses.jsonl")
app = FastAPI()
runnable = RunnableLambda(agent)
writing = Lock()


class Ask(BaseModel):
    """A question; its id, if the client knows it from the dataset."""

    question: str
    question_id: str | None = None


@app.post("/ask")
def ask(body: Ask) -> dict[str, str | None]:
    """Answer a question and record the response."""
    question_id = body.question_id or uuid4().hex
    handler = GraphRAGEvalCallbackHandler()
    config = {"callbacks": [handler], "metadata": {"question_id": question_id}}
    try:
        answer = runnable.invoke(body.question, config=config)
    finally:  # failed questions are recorded, too
        with writing, RESPONSES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(handler.response(question_id), default=str) + "\n")
    return {"question_id": question_id, "answer": answer}
