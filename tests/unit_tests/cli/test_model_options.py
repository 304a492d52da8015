"""A new option of a run is one field: the command line, Python and run.json take it from there."""

import inspect
from typing import Annotated, Any

import pytest
import typer
from pydantic import Field

from graphrag_eval_lc.benchmark.option_fields import ASKING, ENDING, Cli, Recorded, recorded
from graphrag_eval_lc.benchmark.options import of_agent
from graphrag_eval_lc.benchmark.run_options import CheckedOptions, RunOptions
from graphrag_eval_lc.cli.commands import ModelCommand
from graphrag_eval_lc.cli.model_options import After, keywords, with_fields_of
from graphrag_eval_lc.errors import OptionError


class WithOneMore(CheckedOptions):
    think_time: Annotated[
        int, Field(ge=1, description="Seconds to think."), Cli(short="-t", panel=ASKING), Recorded("limits")
    ] = 5


def called(command: Any, *arguments: str) -> None:
    app = typer.Typer(add_completion=False)
    app.command(cls=ModelCommand)(command)
    with pytest.raises(SystemExit):
        app(arguments)


def test_new_field_is_an_option_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {}

    @with_fields_of(lambda: (WithOneMore,))
    def ask(**options: Any) -> None:
        given.update(keywords(WithOneMore, options))

    called(ask, "--help-all")
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


def test_new_field_is_a_keyword_in_python_and_stands_in_the_docstring() -> None:
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
    assert list(parameters)[:2] == ["agent", "dataset"]
    assert parameters.keys() - {"agent", "dataset"} == WithOneMore.model_fields.keys()
    assert (parameters["think_time"].default, parameters["think_time"].annotation) == (5, int)
    doc = inspect.getdoc(ask) or ""
    assert "        - ``think_time`` (5): Seconds to think.\n" in doc
    assert doc.index("All have a default.") < doc.index("think_time") < doc.index("Returns:")


def test_new_field_stands_in_the_runs_record_and_is_checked() -> None:
    assert recorded(WithOneMore(think_time=7))["limits"]["think_time"] == 7
    with pytest.raises(OptionError, match=r"think_time cannot be 0\. It must be greater than or equal to 1\."):
        WithOneMore(think_time=0)
    with pytest.raises(OptionError, match=r"no option think_times\. The options are .*think_time"):
        WithOneMore(think_times=7)


def test_every_option_of_the_command_line_says_what_it_is() -> None:
    for name, field in RunOptions.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


# --- where an option stands ------------------------------------------------------------------------------------------


def names_of(command: Any) -> list[str]:
    return list(inspect.signature(command.completed()).parameters)


def test_own_options_stand_before_or_after_the_fields_or_where_they_say_by_panel() -> None:
    @with_fields_of(lambda: (WithOneMore,), only=("think_time", "max_tokens", "repeats"))
    def ask(
        first: Annotated[bool, typer.Option()] = False,
        *,
        last: Annotated[bool, typer.Option()] = False,
        ending: Annotated[bool, typer.Option(rich_help_panel=ENDING)] = False,
        asking: Annotated[bool, typer.Option(rich_help_panel=ASKING), After("repeats")] = False,
        other: Annotated[bool, typer.Option(rich_help_panel=ASKING), After("absent")] = False,
        **options: Any,
    ) -> None: ...

    assert names_of(ask) == ["first", "last", "repeats", "asking", "think_time", "other", "max_tokens", "ending"]


def test_own_option_takes_the_place_of_the_field_of_its_name() -> None:
    @with_fields_of(lambda: (WithOneMore,))
    def ask(think_time: Annotated[str, typer.Option()] = "", **options: Any) -> None: ...

    assert names_of(ask).count("think_time") == 1
    assert names_of(ask)[0] == "think_time"


def test_options_that_were_not_given_are_left_to_python() -> None:
    assert keywords(RunOptions, {"limit": None, "tags": None, "repeats": 1, "judge_cache": True, "timeout": 0}) == {
        "repeats": 1,
        "judge_cache": False,
        "timeout": None,
    }
