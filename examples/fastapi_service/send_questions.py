"""Sends the questions of the dataset to the service, in this process."""

from fastapi.testclient import TestClient
from service import app

from graphrag_eval_lc import load_dataset

client = TestClient(app)
for template in load_dataset("questions.yaml"):
    for question in template["questions"]:
        body = {"question": question["question_text"], "question_id": question["id"]}
        reply = client.post("/ask", json=body).raise_for_status().json()
        print(f"{reply['question_id']}: {reply['answer']}")
