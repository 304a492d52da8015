"""Mutually exclusive options are rejected with one sentence each, in Python and on the command line."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.option_fields import EXCLUDING, NEEDING, refuse_conflicts
from graphrag_eval_lc.benchmark.run_options import RunOptions
from graphrag_eval_lc.errors import OptionError

DATASET: Any = [{"template_id": "t", "questions": [{"id": "q", "question_text": "1 + 1?"}]}]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"overwrite": True, "retry_errors": True},
            "overwrite and retry_errors exclude each other: overwrite replaces",
        ),
        ({"overwrite": True, "force": True}, "overwrite and force exclude each other"),
        ({"limit": 1, "sample": 1}, "limit and sample exclude each other: limit selects the first questions"),
        ({"seed": 0}, "seed needs sample: a seed alone selects nothing. Add it, or leave seed out."),
    ],
)
def test_python_rejects_them_before_anything_is_written(options: Any, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        run_benchmark(lambda question: "2", DATASET, output_dir=tmp_path / "run", **options)
    assert complaint in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("options", [{"workers": 2}, {"ray_address": "auto"}])
def test_scoring_rejects_engine_options_without_an_engine(options: Any, tmp_path: Path) -> None:
    (name,) = options
    with pytest.raises(OptionError, match=f"{name} needs engine: only Ray has"):
        score_responses(DATASET, {}, output_dir=tmp_path / "run", **options)
    with pytest.raises(OptionError, match=f"{name} needs engine: only Ray has"):
        score_run(tmp_path, **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options",
    [{"overwrite": False, "force": True}, {"limit": None, "sample": 1, "seed": 0}, {"overwrite": True, "limit": 1}],
)
def test_omitted_options_do_not_conflict(options: Any) -> None:
    RunOptions(**options)


def test_requirement_of_one_command_does_not_apply_to_another() -> None:
    names = ("baseline", "fail_on_regression")
    refuse_conflicts(["fail_on_regression"], names, command="compare")
    with pytest.raises(OptionError, match="fail_on_regression needs baseline"):
        refuse_conflicts(["fail_on_regression"], names, command="run")


def test_options_are_named_as_the_caller_knows_them() -> None:
    with pytest.raises(OptionError, match=r"^--json and --dry-run exclude each other: --json prints a run"):
        refuse_conflicts(["as_json", "dry_run"], [], called={"as_json": "--json", "dry_run": "--dry-run"}.__getitem__)


def test_each_pair_is_listed_once() -> None:
    pairs = [frozenset((each.one, each.other)) for each in EXCLUDING]
    assert len(set(pairs)) == len(pairs)
    assert len({(each.option, each.command) for each in NEEDING}) == len(NEEDING)
