"""The command ``import-traces``: traces of other tools as responses."""

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Overwrite, option
from graphrag_eval_lc.cli.printing import say, tell
from graphrag_eval_lc.files.writing import json_line, refuse_existing, replace_file
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.traces.reading import TraceReading, nothing_read


def import_traces(
    traces: Annotated[
        Path,
        typer.Argument(
            help="Spans of OpenTelemetry (OTLP as JSON, also a line for each batch), or runs of LangSmith (JSON, "
            "JSON Lines). The format is recognised automatically.",
            metavar="TRACES",
        ),
    ],
    output: Annotated[Path, option("--output -o", "The file of responses to write (JSON Lines).", "FILE")],
    dataset: Annotated[
        Path | None,
        option(
            "--dataset",
            "The dataset of the questions. Their texts identify traces without an id.",
            "FILE",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Convert traces of other tools to responses, to score them.

    So you do not need to run the agent again. Supported instrumentations: Traceloop (OpenLLMetry), OpenInference,
    Langfuse, pydantic-ai, OpenAI's agents, smolagents, LlamaIndex, and any that follows OpenTelemetry's GenAI
    conventions. The id of a question is read from the metadata of its trace (`question_id`), otherwise it is found by
    the question's text. Other traces are left out. Exits with 2 if no response is found, or the file cannot be read.

    For example:

    `graphrag-eval-lc import-traces traces.json --dataset qa.yaml -o responses.jsonl`
    """
    refuse_existing(output, overwrite=overwrite)
    reading = TraceReading(traces, dataset)
    count: Counter[str] = Counter()

    def lines() -> Iterator[bytes]:
        for response in reading:
            count["responses"] += 1
            count["steps"] += len(response.get("actual_steps") or ())
            count["errors"] += is_error(response)
            count["warnings"] += bool(response.get("capture_warnings"))
            yield json_line(response)
        if not count["responses"]:
            raise nothing_read(reading, traces)  # before the file of before is replaced

    replace_file(output, lines())
    for warning in reading.warnings:
        tell(f"Warning: {warning}.")
    failed = f", {count['errors']:,} of them failed" if count["errors"] else ""
    say(
        f"Wrote {counted(count['responses'], 'response')} with {counted(count['steps'], 'tool call')} to {output}, of "
        f"{counted(reading.number_of_traces, 'trace')}{failed}."
    )
    if count["warnings"]:
        say(f"{counted(count['warnings'], 'response has', 'responses have')} warnings (capture_warnings).")
    if dataset is not None:
        command = shlex.join(("score", str(dataset), str(output), "--answered-only", "-o", "runs/traced"))
        say(f"To score them: graphrag-eval-lc {command}")
