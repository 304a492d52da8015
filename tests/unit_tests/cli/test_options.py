"""Shared options: a new run option is a single field, from which the command line and the Python API are derived."""

import inspect
from typing import Annotated, Any

import pytest
import typer
from pydantic import Field

from graphrag_eval_lc.benchmark.option_fields import ASKING, ENDING, MORE, Cli, Recorded, recorded
from graphrag_eval_lc.benchmark.options import of_agent
from graphrag_eval_lc.benchmark.run_options import CheckedOptions, RunOptions
from graphrag_eval_lc.cli.options import keywords, option, with_options
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.metrics.measures import MEASURES, parse_measure


class WithOneMore(CheckedOptions):
    think_time: Annotated[
        int, Field(ge=1, description="Seconds to think."), Cli(short="-t", panel=ASKING), Recorded("limits")
    ] = 5


def called(command: Any, *arguments: str) -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    with pytest.raises(SystemExit):
        app(arguments)


def test_new_field_is_a_command_line_option(capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {}

    @with_options(WithOneMore)
    def ask(**options: Any) -> None:
        given.update(keywords(WithOneMore, options))

    called(ask, "--help")
    text = capsys.readouterr().out
    (line,) = (words for words in (line.split() for line in text.splitlines()) if "--think-time" in words)
    assert {"-t", "[x>=1]"} < set(line)
    assert "Seconds to think." in " ".join(text.replace("│", " ").split())
    called(ask)
    assert given["think_time"] == 5
    called(ask, "-t", "7")
    assert given["think_time"] == 7
    called(ask, "--think-time", "0")
    assert "--think-time" in capsys.readouterr().err


def test_new_field_is_a_documented_keyword() -> None:
    @of_agent(WithOneMore)
    def ask(agent: Any, dataset: Any, **options: Any) -> None:
        """Ask.

        Args:
            agent: An agent.
            dataset: A dataset.
            **options: All have a default.

        Returns:
            Nothing.
        """

    parameters = inspect.signature(ask).parameters
    assert parameters.keys() - {"agent", "dataset"} == WithOneMore.model_fields.keys()
    assert (parameters["think_time"].default, parameters["think_time"].annotation) == (5, int)
    doc = inspect.getdoc(ask) or ""
    assert "        - ``think_time`` (5): Seconds to think.\n" in doc
    assert doc.index("All have a default.") < doc.index("think_time") < doc.index("Returns:")


def test_new_field_is_recorded_and_validated() -> None:
    assert recorded(WithOneMore(think_time=7))["limits"]["think_time"] == 7
    with pytest.raises(OptionError, match=r"think_time cannot be 0\. It must be greater than or equal to 1\."):
        WithOneMore(think_time=0)
    with pytest.raises(OptionError, match=r"unknown option think_times\. The options are .*think_time"):
        WithOneMore(think_times=7)


def test_every_option_has_a_help_text() -> None:
    for name, field in RunOptions.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_options_are_ordered_by_panel_with_command_options_first() -> None:
    @with_options(WithOneMore, only=())
    def none(own: Annotated[bool, option("--own", "Own.", panel=MORE)] = False, **options: Any) -> None: ...

    @with_options(WithOneMore)
    def ask(
        ending: Annotated[bool, option("--ending", "Ending.", panel=ENDING)] = False,
        first: Annotated[bool, option("--first", "First.")] = False,
        max_tokens: Annotated[str, option("--max-tokens", "Replaces the field.", panel=ASKING)] = "",
        **options: Any,
    ) -> None: ...

    names = list(inspect.signature(ask).parameters)
    assert list(inspect.signature(none).parameters) == ["own"]
    assert names[0] == "first"
    assert names.count("max_tokens") == 1
    in_order = ["max_tokens", "timeout", "think_time", "ending", "grace"]
    assert [name for name in names if name in in_order] == in_order


def test_omitted_options_use_the_python_defaults() -> None:
    assert keywords(RunOptions, {"limit": None, "tags": None, "repeats": 1, "judge_cache": True, "timeout": 0}) == {
        "repeats": 1,
        "judge_cache": False,
        "timeout": None,
    }


def test_help_of_measures_lists_all_of_them() -> None:
    @with_options()
    def none(measures: list[str] | None = None) -> None: ...

    (declared,) = inspect.signature(none).parameters["measures"].annotation.__metadata__
    named = declared.help.partition(": ")[2].partition(". Most of them")[0].split(", ")
    assert named == list(MEASURES)
    assert [parse_measure(name).name for name in named] == named
