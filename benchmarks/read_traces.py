"""The memory and time for reading a large trace file.

Run it as ``python benchmarks/read_traces.py``. It generates two files with 500 MB of OpenInference spans, whose traces
are spread over the whole file: one request per line, as written by the collector's file exporter, and one single
object. Each is read trace by trace in a separate process; the time for the lines is compared with ``json.loads`` of the
same lines. ``--quick`` uses a tenth. The exit code is 1 if the peak memory exceeds 200 MB.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphrag_eval_lc.traces.reading import read_calls

LIMIT_MB = 200
TRACES_AT_ONCE = 500
SPANS_OF_A_LINE = 50


def attribute(key: str, value: str | int) -> dict[str, Any]:
    """Return an attribute as in OTLP/JSON, in which numbers are strings."""
    return {
        "key": key,
        "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)},
    }


def messages(key: str, number: int, text: str) -> list[dict[str, Any]]:
    """Return the attributes of some user messages."""
    return [
        each
        for place in range(number)
        for each in (
            attribute(f"{key}.{place}.message.role", "user"),
            attribute(f"{key}.{place}.message.content", text),
        )
    ]


def trace(random_: random.Random, number: int) -> list[dict[str, Any]]:
    """Return the spans of a trace: an agent, and four times a model and the tool that it calls."""
    trace_id, root = f"{number + 1:032x}", f"{number + 1:016x}"
    started = 1_800_000_000_000_000_000 + number * 1_000_000

    def span(place: int, parent: str, name: str, attributes: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "traceId": trace_id,
            "spanId": root if not place else f"{random_.getrandbits(63) + 1:016x}",
            "parentSpanId": parent,
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(started + place * 1000),
            "endTimeUnixNano": str(started + place * 1000 + 900),
            "attributes": attributes,
            "status": {"code": 1},
        }

    spans = [span(0, "", "agent", [attribute("openinference.span.kind", "AGENT"), attribute("input.value", "Why?")])]
    for round_ in range(4):
        rows = json.dumps([{"line": f"urn:uuid:{random_.getrandbits(128):032x}", "length": 12.5} for _ in range(40)])
        call = "llm.output_messages.0.message.tool_calls.0.tool_call"
        spans.append(
            span(
                2 * round_ + 1,
                root,
                "model",
                [
                    attribute("openinference.span.kind", "LLM"),
                    attribute("input.value", rows * (round_ + 1)),
                    *messages("llm.input_messages", 2 * round_ + 1, rows),
                    attribute("llm.output_messages.0.message.role", "assistant"),
                    attribute(f"{call}.id", f"call_{round_}"),
                    attribute(f"{call}.function.name", "query"),
                    attribute(f"{call}.function.arguments", '{"text": "SELECT"}'),
                    attribute("llm.token_count.prompt", 1200),
                    attribute("llm.token_count.completion", 30),
                ],
            )
        )
        tool = [
            attribute("openinference.span.kind", "TOOL"),
            attribute("tool.name", "query"),
            attribute("input.value", "SELECT"),
            attribute("output.value", rows),
        ]
        spans.append(span(2 * round_ + 2, root, "query", tool))
    return spans


def scattered_spans(size: int) -> Iterator[str]:
    """Yield spans as JSON, up to a number of bytes, interleaving many traces."""
    random_ = random.Random(0)
    written = number = 0
    while written < size:
        waiting = [trace(random_, number + place) for place in range(TRACES_AT_ONCE)]
        number += TRACES_AT_ONCE
        for place in range(len(waiting[0])):
            for spans in waiting:
                text = json.dumps(spans[place])
                written += len(text)
                yield text


def request(spans: list[str]) -> str:
    """Return a request with some spans."""
    scope = '{"scope": {"name": "benchmark"}, "spans": [' + ", ".join(spans) + "]}"
    return '{"resourceSpans": [{"resource": {}, "scopeSpans": [' + scope + "]}]}"


def write_files(folder: Path, size: int) -> tuple[Path, Path]:
    """Write the same spans as one request per line and as a single object."""
    lines, whole = folder / "lines.jsonl", folder / "whole.json"
    begin, end = request(["|"]).split("|")
    with lines.open("w") as lines_file, whole.open("w") as whole_file:
        whole_file.write(begin)
        batch: list[str] = []
        for place, text in enumerate(scattered_spans(size)):
            whole_file.write(text if not place else ", " + text)
            batch.append(text)
            if len(batch) == SPANS_OF_A_LINE:
                lines_file.write(request(batch) + "\n")
                batch = []
        lines_file.write(request(batch) + "\n" if batch else "")
        whole_file.write(end)
    return lines, whole


def measure(what: str, path: Path) -> None:
    """Read a file, and print seconds, peak memory in MB, traces and calls."""
    started = time.perf_counter()
    traces = calls = 0
    if what == "json":
        with path.open(encoding="utf-8") as file:
            for line in file:
                calls += len(json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"])
    else:
        for found in read_calls(path, print):
            traces += 1
            calls += len(found)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    print(json.dumps([seconds, peak, traces, calls]))


def measured(what: str, path: Path) -> tuple[float, float, int, int]:
    """Measure in a separate process."""
    command = [sys.executable, __file__, "--measure", what, "--file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, traces, calls = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak, traces, calls


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 MB in place of 500 MB")
    parser.add_argument("--measure", choices=["json", "traces"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.file)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        lines, whole = write_files(Path(folder), 50_000_000 if options.quick else 500_000_000)
        highest = 0.0
        for name, what, path in (
            ("json.loads of lines", "json", lines),
            ("traces of lines", "traces", lines),
            ("traces of one object", "traces", whole),
        ):
            seconds, peak, traces, calls = measured(what, path)
            size = path.stat().st_size / 1e6
            print(
                f"{name:21} {size:5.0f} MB in {seconds:5.1f} s: {size / seconds:5.0f} MB/s, at most {peak:4.0f} MB of "
                f"memory, {traces:,} traces, {calls:,} spans"
            )
            highest = max(highest, peak if what == "traces" else 0)
    print(f"Memory: {highest:.0f} MB, at most {LIMIT_MB} MB wanted: {'yes' if highest <= LIMIT_MB else 'NO'}")
    return 0 if highest <= LIMIT_MB else 1


if __name__ == "__main__":
    sys.exit(main())
