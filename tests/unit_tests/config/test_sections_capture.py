"""The section ``capture``: the handler's options, and the error for each mistake."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.capture.values import CaptureKeywords
from graphrag_eval_lc.config import CaptureConfig, load_config
from graphrag_eval_lc.errors import ConfigError


def test_section_has_the_handlers_options() -> None:
    assert CaptureConfig.model_fields.keys() == CaptureKeywords.__annotations__.keys()


def test_options_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "capture:\n"
        "  step_names: {search_docs: retrieval}\n"
        "  retrieval_documents: [search_docs]\n"
        "  nodes: {execute: {args: {query: statement}, output: rows.0}}\n"
        "  max_output_chars: 0\n"
        "  redact: package.module:clean\n"
        "  keep_artifacts: false\n"
        "  keep_messages: true\n"
    )
    assert load_config(path).capture.model_dump() == {
        "step_names": {"search_docs": "retrieval"},
        "retrieval_documents": ["search_docs"],
        "nodes": {"execute": {"args": {"query": "statement"}, "output": "rows.0"}},
        "max_output_chars": 0,
        "redact": "package.module:clean",
        "keep_artifacts": False,
        "keep_messages": True,
    }


@pytest.mark.parametrize(
    ("capture", "complaint"),
    [
        (
            {"retrieval_documents": "search_docs"},
            "'search_docs' is not allowed here. Give true, false or a list of tool",
        ),
        ({"retrieval_documents": [3]}, "Give true, false or a list of tool names."),
        ({"retrieval_documents": [""]}, "Give true, false or a list of tool names."),
        ({"retrieval_documents": None}, "Give true, false or a list of tool names."),
        ({"nodes": ["execute"]}, "key capture.nodes: ['execute'] is not allowed here"),
        ({"nodes": {"execute": {"out": "rows"}}}, "Did you mean output?"),
        ({"nodes": {"execute": {"output": "rows."}}}, "key capture.nodes.execute.output: "),
        ({"max_output_chars": -1}, "key capture.max_output_chars: -1 is not allowed here"),
        ({"max_output_chars": True}, "key capture.max_output_chars: True is not allowed here"),
        (
            {"redact": str.upper},
            "a config cannot hold a function. Name it as text, package.module:function, or pass",
        ),
        ({"redact": 3}, "key capture.redact: 3 is not a spec of a function"),
        ({"redact": "clean"}, "'clean' is not a spec of a function. Write package.module:function or path/to/file.py"),
        ({"redact": ":clean"}, "':clean' is not a spec of a function"),
        ({"keep_artifacts": "no"}, "key capture.keep_artifacts: 'no' is not allowed here"),
        ({"keep_messages": 1}, "key capture.keep_messages: 1 is not allowed here"),
        ({"step_names": {"search": ""}}, "key capture.step_names.search: '' is not allowed here"),
        ({"retrieval_document": True}, "Did you mean retrieval_documents?"),
        (True, "key capture: a mapping of keys to values is needed here. Known keys: step_names, retrieval_documents"),
    ],
)
def test_error_names_the_key(capture: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"capture": capture})
    assert complaint in str(caught.value)


def test_error_in_a_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("steps: {}\ncapture:\n  retrieval_documents: all\n")
    with pytest.raises(ConfigError, match=r"config\.yaml, line 3, key capture\.retrieval_documents: 'all'"):
        load_config(path)
