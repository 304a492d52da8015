"""The command ``import``: traces of other tools as responses."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import say, tell
from graphrag_eval_lc.texts import counted


def import_traces(
    traces: Annotated[
        Path,
        typer.Argument(
            help="Spans of OpenTelemetry (OTLP as JSON, also a line for each batch), or runs of LangSmith (JSON, "
            "JSON Lines). The format is found by itself.",
            metavar="TRACES",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file of responses to write (JSON Lines).", metavar="FILE")
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            help="The dataset that was asked: its questions' texts tell the ids that the traces do not.",
            metavar="FILE",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Turn traces of other tools into responses, so that an agent need not run again to be scored.

    Instrumentations whose spans are read: Traceloop (OpenLLMetry), OpenInference, Langfuse, pydantic-ai, OpenAI's
    agents, smolagents, LlamaIndex, and what follows OpenTelemetry's GenAI conventions. The id of a question stands in
    the metadata of its trace (`question_id`), else its text tells it. Traces of other questions are left out.

    Exit code 0: there are responses; 2: there are none, or the file cannot be read.

    For example:

    `graphrag-eval-lc import traces.json --dataset qa.yaml -o responses.jsonl`

    `graphrag-eval-lc score qa.yaml responses.jsonl --answered-only -o runs/traced`
    """
    # Imported here so that --help does not wait for langchain-core.
    from graphrag_eval_lc.files.writing import json_line, refuse_existing, replace_file
    from graphrag_eval_lc.traces.reading import TraceReading, nothing_read

    refuse_existing(output, overwrite=overwrite)
    reading = TraceReading(traces, dataset)
    count = _Counts()

    def lines() -> Iterator[bytes]:
        for response in reading:
            count.responses += 1
            count.steps += len(response.get("actual_steps") or ())
            count.errors += response.get("status") == "error"
            count.warnings += bool(response.get("capture_warnings"))
            yield json_line(response)
        if not count.responses:
            raise nothing_read(reading, traces)  # before the file of before is replaced

    replace_file(output, lines())
    for warning in reading.warnings:
        tell(f"Warning: {warning}.")
    failed = f", {count.errors:,} of them failed" if count.errors else ""
    say(
        f"Wrote {counted(count.responses, 'response')} with {counted(count.steps, 'tool call')} to {output}, of "
        f"{counted(reading.number_of_traces, 'trace')}{failed}."
    )
    if count.warnings:
        say(f"{counted(count.warnings, 'response has', 'responses have')} warnings (capture_warnings).")
    if dataset is not None:
        command = shlex.join(("score", str(dataset), str(output), "--answered-only", "-o", "runs/traced"))
        say(f"To score them: graphrag-eval-lc {command}")


class _Counts:
    """What was written."""

    responses = steps = errors = warnings = 0
