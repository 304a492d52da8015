"""Publishing scores as log records, parsed with OpenTelemetry's own definitions."""

from pathlib import Path
from typing import Any

import pytest
from support.tool_stubs import tool_stub

from graphrag_eval_lc import publish_scores, run_benchmark
from graphrag_eval_lc.errors import OptionError, PublishError
from graphrag_eval_lc.traces.export import exported_trace_id

logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
DATASET = [
    {
        "template_id": "sums",
        "questions": [
            {"id": f"q{number}", "question_text": "?", "reference_steps": [[{"name": "add", "output": "2"}]]}
            for number in (1, 2, 3)
        ],
    }
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run_benchmark(lambda question: "2", DATASET, output_dir=tmp_path / "run", progress="off")
    return tmp_path / "run"


def test_each_score_is_a_record_with_the_trace_of_its_question(folder: Path) -> None:
    with tool_stub(lambda method, path, body: (200, {})) as server:
        published = publish_scores(folder, to="otel", endpoint=f"{server.url}/v1/logs")
        bodies = [logs.ExportLogsServiceRequest.FromString(body) for _, _, body in server.seen if body]
    assert published.sent == 3
    records = [
        record for each in bodies for logged in each.resource_logs for record in logged.scope_logs[0].log_records
    ]
    found = [{each.key: each.value for each in record.attributes} for record in records]
    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    assert [each["gen_ai.evaluation.score.value"].double_value for each in found] == [0.0] * 3
    assert found[0]["gen_ai.evaluation.explanation"].string_value.startswith("add: the agent did not call add")
    run_id = found[0]["graphrag_eval_lc.run_id"].string_value
    assert [record.trace_id.hex() for record in records] == [exported_trace_id(run_id, f"q{n}", 1) for n in (1, 2, 3)]


def test_kill_between_scores_loses_and_duplicates_nothing(folder: Path) -> None:
    with tool_stub(lambda method, path, body: (200, {})) as server:
        address = f"{server.url}/v1/logs"
        publish_scores(folder, to="otel", endpoint=address)
        record = folder / "published.jsonl"
        lines = record.read_text().splitlines(keepends=True)
        record.write_text(lines[0] + lines[1][:20])  # as a kill leaves it
        before = len(server.seen)
        second = publish_scores(folder, to="otel", endpoint=address)
        assert (second.sent, second.unchanged) == (2, 1)
        assert len(server.seen) == before + 3  # one of them checks that the receiver exists
        assert publish_scores(folder, to="otel", endpoint=address).unchanged == 3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"to": "jaeger"}, OptionError, "cannot be published to 'jaeger'"),
        ({"to": "otel", "metrics": ["step_score"]}, OptionError, "Did you mean steps_score"),
        ({"to": "otel", "max_per_minute": 0}, OptionError, "max_per_minute"),
        ({"to": "otel", "endpoint": "127.0.0.1:4318"}, OptionError, "not an address of HTTP"),
        ({"to": "otel", "project": "p"}, PublishError, "no projects"),
    ],
)
def test_invalid_options_are_one_clear_error(folder: Path, options: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        publish_scores(folder, **options)


def test_publishing_stops_if_the_server_rejects_everything(folder: Path) -> None:
    with tool_stub(lambda method, path, body: (200, {}) if not body else (403, {})) as server:
        published = publish_scores(folder, to="otel", endpoint=f"{server.url}/v1/logs")
        assert len(server.seen) == 2
    assert [each.reason.startswith("not sent, since publishing was stopped") for each in published.unplaced] == [
        False,
        True,
        True,
    ]
