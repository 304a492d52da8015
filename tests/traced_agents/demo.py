"""Run the demo's agent on the demo's questions with a tracer and the capture handler at the same time.

``python demo.py TRACER FOLDER``: TRACER is traceloop, openinference, both (at once), langfuse or langsmith. The traces
are written to FOLDER in each format of the tracer, the handler's responses to FOLDER/handler.jsonl.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphRecursionError

from graphrag_eval_lc import GraphRAGEvalCallbackHandler, load_dataset
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent


def main(tracer: str, folder: Path) -> None:
    """Run all questions and write the recordings."""
    handler = GraphRAGEvalCallbackHandler()
    if tracer == "langsmith":
        from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

        collector = RunCollectorCallbackHandler()
        _ask([handler, collector])
        _write_runs(collector.traced_runs, folder)
    else:
        from spans import recording, write_otlp, write_printed, write_protobuf_json

        provider, exporter = recording()
        _ask([handler, *_instrumented(tracer, provider)])
        write_otlp(exporter, folder / "otlp.json")
        write_otlp(exporter, folder / "otlp.jsonl")
        write_protobuf_json(exporter, folder / "protobuf.json")
        write_printed(exporter, folder / "printed.txt")
    lines = (f"{json.dumps(response)}\n" for response in handler.responses())
    (folder / "handler.jsonl").write_text("".join(lines))


def _instrumented(tracer: str, provider: Any) -> list[BaseCallbackHandler]:
    """Instrument LangChain and return the tracer's callbacks."""
    if tracer == "langfuse":
        from langfuse import Langfuse
        from langfuse.langchain import CallbackHandler

        # No server listens there; the spans are read from the provider.
        Langfuse(
            public_key="pk-lf-none", secret_key="sk-lf-none", base_url="http://127.0.0.1:9", tracer_provider=provider
        )
        return [CallbackHandler()]
    if tracer in ("traceloop", "both"):
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor

        LangchainInstrumentor().instrument(tracer_provider=provider)
    if tracer in ("openinference", "both"):
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=provider)
    return []


def _ask(callbacks: list[BaseCallbackHandler]) -> None:
    agent = create_demo_agent()
    for template in load_dataset(DATASET_PATH):
        for question in template["questions"]:
            with contextlib.suppress(GraphRecursionError):  # like one of the demo's questions
                agent.invoke(
                    {"messages": [("user", question["question_text"])]},
                    {"callbacks": callbacks, "metadata": {"question_id": question["id"]}, "tags": ["demo"]},
                )


def _write_runs(runs: list[Any], folder: Path) -> None:
    trees = [_plain(run) for run in runs]
    (folder / "trees.json").write_text(json.dumps(trees, default=_json))
    lines = [{key: each[key] for key in each if key != "child_runs"} for tree in trees for each in _flat(tree)]
    (folder / "runs.jsonl").write_text("".join(f"{json.dumps(line, default=_json)}\n" for line in lines))


def _plain(run: Any) -> dict[str, Any]:
    left_out = {"child_runs", "parent_run", "ls_client", "client"}
    fields = {key: value for key, value in run.model_dump(mode="python").items() if key not in left_out}
    return {**fields, "child_runs": [_plain(child) for child in run.child_runs]}


def _flat(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [tree, *(each for child in tree["child_runs"] for each in _flat(child))]


def _json(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
