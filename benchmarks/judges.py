"""The speed of judged metrics, compared with graphrag-eval and ragas, with a server that answers after 100 ms.

Run it as ``python benchmarks/judges.py``. 40 questions are judged, each with an answer (correctness, relevance) and a
retrieval step of five contexts that matches its reference, 16 requests at a time; then five times as many, 64 at a
time, which shows a request's overhead in addition to its wait. The server is the tests' stub of the OpenAI API, in a
separate process, and counts the requests. Wall time is measured after a first question that does not count: ours is the
median of a few runs, the others run once.

graphrag-eval sends one request after the other, and has no utilization metric. It is therefore compared on the metrics
that both have, and ragas on its own metrics, 16 scores at a time. Both run in a separate Python 3.12 environment in a
temporary folder: ``--python`` names that Python, ``--venv`` keeps the environment, ``--no-graphrag-eval`` skips them,
``--quick`` gives them a quarter of the questions, extrapolates their time, and runs ours less often. The exit code is 1
if a goal is missed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from _graphrag_eval_environment import graphrag_eval_python

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.dataset import questions_of
from graphrag_eval_lc.records import Question, Template

QUESTIONS = 40
CONTEXTS = 5
CONCURRENCY = 16
LATENCY_SEC = 0.1
WALL_GOAL = 1.3  # upper limit relative to calls × latency / concurrency
MANY_AT_ONCE = 64
MANY_GOAL = 1.5  # the same with this concurrency
MORE = 5  # with this many times as many questions
SPEED_GOAL = 15.0  # at least this many times as fast as graphrag-eval

# The most requests per question.
BUDGET = {
    "answer_correctness": 1,
    "answer_relevance": 1 + 1,  # three questions in one request, and the embeddings of four
    "retrieval_answer": 1 + CONTEXTS,
    "retrieval_context": 1 + CONTEXTS,
    "retrieval_utilization": CONTEXTS,
}
KEYS = {  # where a metric's value is stored
    "answer_correctness": "answer_f1",
    "answer_relevance": "answer_relevance",
    "retrieval_answer": "retrieval_answer_f1",
    "retrieval_context": "retrieval_context_f1",
    "retrieval_utilization": "retrieval_utilization",
}

STUB = """
import json, sys
sys.path.insert(0, sys.argv[1])
from support.openai_stub import OpenAIStub

def answer(request):
    form = json.dumps(request.schema) if request.schema else request.system + request.user
    if "true_positives" in form:
        return {"reason": "R.", "true_positives": ["C."], "false_positives": [], "false_negatives": []}
    if "reference_claims_count" in form:
        return {"reference_claims_count": 1, "actual_claims_count": 1, "matching_claims_count": 1, "reason": "R."}
    if "attributed" in form:
        statements = [{"statement": "S.", "reason": "R.", "attributed": 1}]
        return {"classifications" if "classifications" in form else "statements": statements}
    if "noncommittal" in form:
        return {"questions": ["Which line is it?"] * 3, "noncommittal": 0}
    return {"reason": "R.", "verdict": 1}

with OpenAIStub() as stub:
    stub.answer, stub.latency_sec = answer, float(sys.argv[2])
    print(stub.base_url, flush=True)
    for _ in sys.stdin:
        print(len(stub.requests), stub.most_in_flight, flush=True)
        stub.requests.clear()
        stub.most_in_flight = 0
"""

# Both read JSON (dataset, responses, base_url, warm_up), and print the seconds and the number of values.
THEIR_JUDGES = """
import asyncio, json, sys, tempfile, time, yaml
from graphrag_eval import run_evaluation
data = json.load(sys.stdin)
model = {"provider": "openai", "api_base": data["base_url"], "api_key": "k"}
config = {"llm": {"generation": {**model, "model": "gpt-4o-mini"},
                  "embedding": {**model, "model": "text-embedding-3-small"}}}
with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    yaml.safe_dump(config, file)
    file.flush()
    async def main():
        await run_evaluation(data["warm_up"], data["responses"], file.name)
        started = time.perf_counter()
        results = await run_evaluation(data["dataset"], data["responses"], file.name)
        return time.perf_counter() - started, results
    seconds, results = asyncio.run(main())
keys = ("answer_f1", "answer_relevance", "retrieval_answer_f1", "retrieval_context_f1")
records = [record for result in results for record in (result, *result["actual_steps"])]
print(json.dumps([seconds, sum(key in record for record in records for key in keys)]))
"""
RAGAS = """
import asyncio, json, sys, time
from openai import AsyncOpenAI
from ragas.embeddings import OpenAIEmbeddings
from ragas.llms import llm_factory
from ragas.metrics.collections import AnswerRelevancy, ContextPrecision, ContextRecall, ContextUtilization
data = json.load(sys.stdin)

def scores(templates, llm, embeddings):
    recall, precision, utilization = ContextRecall(llm=llm), ContextPrecision(llm=llm), ContextUtilization(llm=llm)
    relevancy = AnswerRelevancy(llm=llm, embeddings=embeddings)
    for question in (question for template in templates for question in template["questions"]):
        asked, response = question["question_text"], data["responses"][question["id"]]
        contexts = [each["text"] for each in json.loads(response["actual_steps"][0]["output"])]
        texts = "\\n".join(each["text"] for each in json.loads(question["reference_steps"][0][0]["output"]))
        answer = response["actual_answer"]
        yield relevancy.ascore(user_input=asked, response=answer)
        yield utilization.ascore(user_input=asked, response=answer, retrieved_contexts=contexts)
        for reference in (question["reference_answer"], texts):
            yield recall.ascore(user_input=asked, reference=reference, retrieved_contexts=contexts)
            yield precision.ascore(user_input=asked, reference=reference, retrieved_contexts=contexts)

async def main():
    client = AsyncOpenAI(base_url=data["base_url"], api_key="k")
    models = llm_factory("gpt-4o-mini", client=client), OpenAIEmbeddings(client=client)
    await asyncio.gather(*scores(data["warm_up"], *models))
    places = asyncio.Semaphore(data["concurrency"])
    async def placed(score):
        async with places:
            return await score
    started = time.perf_counter()
    values = await asyncio.gather(*map(placed, scores(data["dataset"], *models)))
    return [time.perf_counter() - started, len(values)]

print(json.dumps(asyncio.run(main())))
"""


class Other(NamedTuple):
    """Another library: its script, the metrics that it shares with this package, and its values per question."""

    name: str
    script: str
    metrics: list[str]
    values: int


OTHERS = {
    other.name: other
    for other in (
        Other("ragas", RAGAS, [metric for metric in BUDGET if metric != "answer_correctness"], 6),
        Other("graphrag-eval", THEIR_JUDGES, [metric for metric in BUDGET if metric != "retrieval_utilization"], 4),
    )
}


class Measured(NamedTuple):
    """One way of judging all questions."""

    seconds: float
    requests: int
    most_in_flight: int


class Stub:
    """The server, in a separate process so that it does not slow down the measured loop."""

    def __init__(self) -> None:
        tests = Path(__file__).parents[1] / "tests"
        command = [sys.executable, "-c", STUB, str(tests), str(LATENCY_SEC)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.base_url = self._line()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def counts(self) -> tuple[int, int]:
        """Return the number of requests since the last call, and the most at once."""
        if self._process.stdin is None:
            raise SystemExit("The stub has no input.")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        requests, most_in_flight = self._line().split()
        return int(requests), int(most_in_flight)

    def _line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise SystemExit("The stub does not run: see the error above.")
        return line.strip()


def dataset_of(questions: int) -> list[Template]:
    """Return a template whose questions have a reference answer and one retrieval step."""
    return [{"template_id": "t", "questions": [question(number) for number in range(questions)]}]


def size(dataset: list[Template]) -> int:
    """Return the number of questions."""
    return sum(1 for _ in questions_of(dataset))


def question(number: int) -> Question:
    """Return a question."""
    return {
        "id": f"q{number}",
        "question_text": f"Which line starts at substation {number}?",
        "reference_answer": f"Line {number} starts at substation {number}.",
        "reference_steps": [[{"name": "retrieval", "args": {"query": "line", "k": 5}, "output": contexts(number, 2)}]],
    }


def response(number: int) -> dict[str, Any]:
    """Return the response to a question."""
    step = {"name": "retrieval", "args": {"query": "line", "k": 5}, "id": "s", "status": "success"}
    return {
        "question_id": f"q{number}",
        "actual_answer": f"It is line {number}.",
        "actual_steps": [{**step, "output": contexts(number, CONTEXTS)}],
    }


def contexts(number: int, count: int) -> str:
    """Return retrieved contexts as JSON."""
    texts = (f"Context {rank} tells that line {number} starts at substation {number}. " * 5 for rank in range(count))
    return json.dumps([{"id": f"d{number}-{rank}", "text": text} for rank, text in enumerate(texts)])


def responses_to(dataset: list[Template]) -> dict[str, Any]:
    """Return the responses by question id."""
    answered = (response(number) for number in range(size(dataset)))
    return {each["question_id"]: each for each in answered}


def our_time(
    stub: Stub, dataset: list[Template], metrics: Sequence[str], repeats: int, concurrency: int = CONCURRENCY
) -> Measured:
    """Return the median time of some evaluations with some metrics; each has its own pool and connections."""
    model = {"base_url": stub.base_url, "api_key": "k"}
    config = {
        "llm": {"generation": model, "embedding": model},
        "judges": {"max_concurrency": concurrency, "metrics": list(metrics)},
    }
    responses = responses_to(dataset)
    run_evaluation(dataset_of(1), responses_to(dataset_of(1)), config)
    measured = []
    for _ in range(repeats):
        stub.counts()
        started = time.perf_counter()
        results = run_evaluation(dataset, responses, config)
        measured.append(Measured(time.perf_counter() - started, *stub.counts()))
        check(results, metrics)
    return Measured(statistics.median(each.seconds for each in measured), *measured[-1][1:])


def check(results: Sequence[Any], metrics: Sequence[str]) -> None:
    """Exit if a value is missing."""
    for result in results:
        record = {**result, **result["actual_steps"][0]}
        missing = [KEYS[metric] for metric in metrics if KEYS[metric] not in record]
        if missing:
            raise SystemExit(f"{missing} of {result['question_id']} missing: {record}")


def their_time(script: str, python: Path, stub: Stub, dataset: list[Template]) -> tuple[Measured, int]:
    """Return the time of a script in the other environment, and its number of values per question."""
    data = {
        "dataset": dataset,
        "warm_up": dataset_of(1),
        "responses": responses_to(dataset),
        "base_url": stub.base_url,
        "concurrency": CONCURRENCY,
    }
    stub.counts()
    outcome = subprocess.run(
        [python, "-c", script],
        input=json.dumps(data),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "RAGAS_DO_NOT_TRACK": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    seconds, values = json.loads(outcome.stdout.splitlines()[-1])
    requests, most_in_flight = stub.counts()
    questions = size(dataset)
    return Measured(seconds, requests * questions // (questions + 1), most_in_flight), values // questions


def print_row(name: str, measured: Measured, least: float) -> None:
    """Print a row of the table; ``least`` is the minimum for the requests without any overhead."""
    times = measured.seconds / least
    print(f"{name:42}{measured.requests:9}{measured.most_in_flight:9}{measured.seconds:9.2f}{times:9.2f}", flush=True)


def least_time(calls: int, concurrency: int = CONCURRENCY) -> float:
    """Return calls × latency / concurrency."""
    return calls * LATENCY_SEC / concurrency


def measure_ours(stub: Stub, dataset: list[Template], repeats: int) -> bool:
    """Print the time of all metrics, and return whether the goals are met."""
    budget = sum(BUDGET.values()) * size(dataset)
    ours = our_time(stub, dataset, list(BUDGET), repeats)
    print_row("all metrics, graphrag_eval_lc", ours, least_time(budget))
    is_met = verdict("the call budget", f"{ours.requests} of {budget} requests", is_met=ours.requests <= budget)
    ratio = ours.seconds / least_time(budget)
    goal = f"wall at most {WALL_GOAL} of calls × latency / concurrency"
    return is_met & verdict(goal, f"{ratio:.2f} times", is_met=ratio <= WALL_GOAL)


def measure_many(stub: Stub, repeats: int) -> bool:
    """Print the time of many concurrent requests, with the CPU time per request, and return whether the goal is met."""
    dataset = dataset_of(MORE * QUESTIONS)
    began = time.process_time()
    ours = our_time(stub, dataset, list(BUDGET), repeats, MANY_AT_ONCE)
    cpu = (time.process_time() - began) / (repeats * ours.requests)
    least = least_time(ours.requests, MANY_AT_ONCE)
    print_row(f"all metrics, {MANY_AT_ONCE} at a time, graphrag_eval_lc", ours, least)
    goal = f"wall at most {MANY_GOAL} of calls × latency / {MANY_AT_ONCE}"
    ratio = ours.seconds / least
    return verdict(goal, f"{ratio:.2f} times, {1000 * cpu:.1f} ms of CPU a request", is_met=ratio <= MANY_GOAL)


def measure_beside(other: Other, python: Path, stub: Stub, *, fewer: int, repeats: int) -> float | None:
    """Print the times for the metrics that both have, and return the speed-up, or None if the other one is missing.

    Args:
        other: The other library; it judges fewer questions, and its time is extrapolated.
        python: The interpreter of its environment.
        stub: The server.
        fewer: It judges one of this many questions.
        repeats: How often ours runs.
    """
    least = least_time(sum(BUDGET[metric] for metric in other.metrics) * QUESTIONS)
    ours = our_time(stub, dataset_of(QUESTIONS), other.metrics, repeats)
    print_row(f"metrics of {other.name}, graphrag_eval_lc", ours, least)
    try:
        measured, values = their_time(other.script, python, stub, dataset_of(QUESTIONS // fewer))
    except subprocess.CalledProcessError as problem:
        print(f"{other.name} fails, with the exit code {problem.returncode}: see the error above.")
        return None
    if values < other.values:
        print(f"{other.name} gives {values} values for a question instead of {other.values}.")
        return None
    theirs = Measured(measured.seconds * fewer, measured.requests * fewer, measured.most_in_flight)
    print_row(f"metrics of {other.name}, {other.name}{' (scaled)' if fewer > 1 else ''}", theirs, least)
    print(f"  {theirs.seconds / ours.seconds:.1f} times as fast as {other.name}")
    return theirs.seconds / ours.seconds


def verdict(goal: str, measured: str, *, is_met: bool) -> bool:
    """Print a goal and the measured value."""
    print(f"  goal, {goal}: {measured}, {'met' if is_met else 'NOT MET'}", flush=True)
    return is_met


def environment(folder: Path, wanted: str | None) -> Path | None:
    """Return the interpreter of the others' environment, or None if it cannot be created."""
    try:
        return graphrag_eval_python(folder, wanted, has_judges=True)
    except (SystemExit, OSError, subprocess.CalledProcessError) as problem:
        print(f"graphrag-eval and ragas are left out, as their environment cannot be made: {problem}")
        return None


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="a Python 3.12")
    parser.add_argument("--venv", type=Path, help="where the environment of graphrag-eval and ragas is made and kept")
    parser.add_argument("--no-graphrag-eval", action="store_true", help="do not run graphrag-eval and ragas")
    parser.add_argument("--quick", action="store_true", help="give the others a quarter of the questions")
    options = parser.parse_args()
    fewer, repeats = (4, 3) if options.quick else (1, 5)
    with tempfile.TemporaryDirectory() as name, Stub() as stub:
        python = None
        if not options.no_graphrag_eval:
            python = environment(options.venv or Path(name, "venv"), options.python)
        print(f"{QUESTIONS} questions, {LATENCY_SEC * 1000:.0f} ms for an answer, {CONCURRENCY} requests at a time")
        print(f"{'':42}{'requests':>9}{'at once':>9}{'wall s':>9}{'× least':>9}")
        is_met = measure_ours(stub, dataset_of(QUESTIONS), repeats)
        is_met &= measure_many(stub, repeats)
        if python is not None:
            ratios = {
                name: measure_beside(other, python, stub, fewer=fewer, repeats=repeats)
                for name, other in OTHERS.items()
            }
            ratio = ratios["graphrag-eval"]
            if ratio is not None:
                goal = f"at least {SPEED_GOAL:.0f} times as fast as graphrag-eval"
                is_met &= verdict(goal, f"{ratio:.1f} times", is_met=ratio >= SPEED_GOAL)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
