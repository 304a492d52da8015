"""The options of a run are validated before it starts."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.benchmark.score_responses import score_run
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import AgentError, CaptureError, ConfigError, OptionError


def checked(**options: Any) -> CheckedOptions:
    return CheckedOptions(**options)


def test_every_option_has_a_default() -> None:
    options = checked()
    assert (options.max_concurrency, options.timeout, options.retry.max_retries, options.repeats) == (8, 600.0, 2, 1)
    assert (options.grace, options.progress, options.selection) == (30.0, "auto", Selection())
    assert options.output_dir is options.failure_limit is options.max_tokens is options.max_time is None


def test_values_are_normalized() -> None:
    options = checked(
        output_dir="runs/a",
        log_file=Path("log.jsonl"),
        tags=["night"],
        max_time=timedelta(minutes=2),
        max_failures="5%",
        max_retries=0,
        retry_on=(ValueError,),
        timeout=5,
        config={"steps": {"scoring": "all_groups"}},
    )
    assert (options.output_dir, options.log_file, options.tags) == (Path("runs/a"), Path("log.jsonl"), ("night",))
    assert (options.max_time, str(options.failure_limit), options.timeout) == (120.0, "5%", 5.0)
    assert (options.retry.max_retries, options.retry.retry_on) == (0, (ValueError,))
    assert options.config.steps.scoring == "all_groups"


def test_functions_may_be_specs(tmp_path: Path) -> None:
    path = tmp_path / "functions_of_the_test.py"
    path.write_text("def make_input(question):\n    return question['question_text']\n")
    assert checked(input_fn=f"{path}:make_input").input_fn({"question_text": "x"}) == "x"  # type: ignore[misc]
    with pytest.raises(AgentError, match="has no attribute absent"):
        checked(answer_fn=f"{path}:absent")


# --- invalid options -------------------------------------------------------------------------------------------------


def test_unknown_option_is_reported_with_the_valid_ones() -> None:
    with pytest.raises(OptionError, match=r"unknown option max_concurency, retries\. The options are agent_config"):
        checked(retries=3, max_concurency=4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("max_concurrency", "repeats") for value in (0, -1, 1.5, "8", True, None)),
        *(("repeats", value) for value in (100_001, 10**12)),
        *((name, value) for name in ("limit", "sample", "max_tokens") for value in (0, -1, 1.5, "8", True)),
        *(("max_retries", value) for value in (-1, 1.5, "2", True, None)),
        *(("requests_per_minute", value) for value in (0, -1, "60", math.nan, True)),
        *(("timeout", value) for value in (0, -1, "60", math.nan)),
        *(("max_time", value) for value in (0, -5.0, "1h", timedelta(0))),
        *(("grace", value) for value in (-1, None, "30", math.nan)),
        *(("max_failures", value) for value in (-1, "many", "101%")),
        *((name, value) for name in ("input_fn", "answer_fn", "on_response", "on_event") for value in (3, [])),
        *((name, value) for name in ("output_dir", "log_file") for value in (3, ["runs"])),
        *((name, 3) for name in ("tags", "template_ids", "question_ids", "agent_config", "capture", "retry_on")),
        ("tags", "night"),
        ("tags", [3]),
        ("agent_config", [("recursion_limit", 5)]),
        ("progress", "bars"),
        ("progress", None),
        ("capture", {"step_name": {}}),
        ("seed", "x"),
    ],
)
def test_invalid_value_is_reported_with_the_option(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=name):
        checked(**{name: value})


@pytest.mark.parametrize("value", [3, "nDCG@10", [3]])
def test_measures_are_a_list_of_strings(value: Any) -> None:
    with pytest.raises(OptionError, match=r"measures cannot be .* It must be a list of texts"):
        score_run("run", measures=value)


def test_values_of_other_rooms_are_validated_there() -> None:
    with pytest.raises(CaptureError, match="redact"):
        checked(capture={"redact": 3})
    with pytest.raises(ConfigError, match="step"):
        checked(config={"step": {}})


# --- capture options -------------------------------------------------------------------------------------------------


@pytest.fixture
def redacting(tmp_path: Path) -> Path:
    path = tmp_path / "redacting_of_the_test.py"
    path.write_text("open(__file__ + '.loaded', 'w').close()\ndef clean(value): return 'x'\nnothing = 3\n")
    return path


def test_python_options_override_the_capture_config(redacting: Path) -> None:
    section = {
        "retrieval_documents": ["a"],
        "max_output_chars": 9,
        "redact": f"{redacting}:clean",
        "keep_messages": True,
    }
    capture = checked(config={"capture": section}, capture={"max_output_chars": None, "keep_artifacts": False}).capture
    redact = capture.pop("redact")
    assert redact is not None
    assert redact("secret") == "x"
    assert capture == {
        "step_names": {},
        "retrieval_documents": ["a"],
        "nodes": {},
        "max_output_chars": None,
        "keep_artifacts": False,
        "keep_messages": True,
    }


def test_overridden_function_of_the_config_is_not_loaded(redacting: Path) -> None:
    config = {"capture": {"redact": f"{redacting}:clean"}}
    assert checked(config=config, capture={"redact": None}).capture["redact"] is None
    assert not redacting.with_name(f"{redacting.name}.loaded").exists()


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("{path}:absent", "has no attribute absent. It has: clean."),
        ("{path}:nothing", "is int, not a function. Name a function that accepts a value"),
        ("absent_module_of_the_test:clean", "the module absent_module_of_the_test was not found"),
    ],
)
def test_invalid_function_in_the_config_is_reported_with_file_and_key(
    redacting: Path, spec: str, complaint: str
) -> None:
    config = redacting.with_name("config.yaml")
    config.write_text(f"capture: {{redact: '{spec.format(path=redacting)}'}}")
    with pytest.raises(ConfigError) as caught:
        checked(config=config)
    assert str(caught.value).startswith(f"{config}, key capture.redact: ")
    assert complaint in str(caught.value)


def test_capture_option_in_the_wrong_place_is_reported_with_the_right_one() -> None:
    with pytest.raises(OptionError, match=r'unknown option keep_messages\. Write capture=\{"keep_messages": …\}\.'):
        CheckedOptions(keep_messages=True)


def test_numpy_numbers_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    options = CheckedOptions(repeats=numpy.int64(2), timeout=numpy.float32(1.5), max_concurrency=numpy.int8(3))
    assert (options.repeats, options.timeout, options.max_concurrency) == (2, 1.5, 3)
    assert type(options.repeats) is int
