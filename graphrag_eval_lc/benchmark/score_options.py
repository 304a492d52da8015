"""The options of scoring: each is one field, from which Python, the command line and run.json derive."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from graphrag_eval_lc.benchmark.option_fields import ENGINE, FOLDER, QUIET, SELECTION, Cli, ProgressMode, Recorded
from graphrag_eval_lc.benchmark.options import (
    AS_GIVEN,
    Options,
    checked_by,
    checked_gates,
    checked_path,
    checked_progress_mode,
    checked_texts,
    completed_by,
    loaded_config,
)
from graphrag_eval_lc.benchmark.specs import evaluators_of
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, GateConfig
from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.dataset.selection import Selection

RAY: Final = "ray"


class ScoringOptions(Options):
    """Which responses are scored, and how: the options that a run and both ways of scoring have."""

    template_ids: Annotated[
        Sequence[str],
        AS_GIVEN,
        Field(description="Only the questions of these templates."),
        Cli(
            name="--template",
            help="Only the questions of this template; may be repeated.",
            panel=SELECTION,
            metavar="ID",
            is_common=True,
        ),
    ] = ()
    question_ids: Annotated[
        Sequence[str],
        AS_GIVEN,
        Field(description="Only the questions with these ids."),
        Cli(
            name="--question",
            help="Only the question with this id; may be repeated.",
            panel=SELECTION,
            metavar="ID",
        ),
    ] = ()
    llm: Annotated[Any, Field(description="A model that judges, instead of that of the config.")] = None
    embeddings: Annotated[Any, Field(description="A model for embeddings, instead of that of the config.")] = None
    config: Annotated[
        ConfigSource,
        completed_by(loaded_config),
        Field(description="A path, a dict or an EvaluationConfig; None for the defaults.", validate_default=True),
    ] = None
    evaluators: Annotated[
        Sequence[Callable[..., Any] | str],
        checked_by(evaluators_of),
        Field(
            description="Your functions that score each response, ``(question, response)``, or their specs as "
            "``package.module:function`` or ``path/to/file.py:function``; see ``run_evaluation``."
        ),
        Cli(
            name="--evaluator",
            help="Your function that scores each response, (question, response), as package.module:function or "
            "path/to/file.py:function; may be repeated.",
            metavar="SPEC",
        ),
    ] = ()
    gates: Annotated[
        Any,
        checked_by(checked_gates),
        Field(
            description='Gates in addition to those of the config, such as ``["steps_score=0.9"]``; see '
            "``gate_results``. Their names are checked before the agent is called; ``run.gate_results()`` says "
            "which the run passes."
        ),
    ] = ()
    engine: Annotated[
        Literal["ray"] | None,
        Field(
            description="``ray``: the workers of a Ray cluster call the agent or, if responses are scored without an "
            "agent, compare them. Otherwise this process does it."
        ),
        Cli(metavar="ray", panel=ENGINE),
        Recorded(),
    ] = None
    ray_address: Annotated[
        str | None,
        Field(
            description="The address of the Ray cluster, such as ``auto`` or ``ray://head:10001``. By default that of "
            "RAY_ADDRESS, or a cluster that is started for the run."
        ),
        Cli(metavar="ADDRESS", panel=ENGINE),
    ] = None
    workers: Annotated[
        int | None,
        Field(
            ge=1,
            description="The most Ray workers; by default one for each question in flight or, if responses are scored, "
            "for each processor of the cluster.",
        ),
        Cli(metavar="N", panel=ENGINE),
    ] = None
    max_cost: Annotated[
        float | None,
        Field(gt=0, description="The most USD that the judges may cost; the rest is scored without them."),
        Cli(metavar="USD", is_common=True),
    ] = None
    judge_cache: Annotated[
        bool,
        Field(description="Whether the judges' answers are cached in the folder and reused."),
        Cli(
            name="--no-cache",
            help="Do not use the cache: send all requests of the judges again.",
            panel=FOLDER,
            default=False,
            converts=lambda is_off: not is_off,
        ),
    ] = True
    report: Annotated[
        bool,
        Field(
            description="Whether ``report.html`` is written into the folder. This needs the extra ``[report]``; "
            "without it ``run.notes`` says how to get it."
        ),
    ] = True
    open_files: Annotated[
        bool,
        Field(
            description="Let the umask decide who may read new files, such as when another user uploads them. "
            "Otherwise only their owner may (0700 and 0600)."
        ),
        Cli(panel=FOLDER),
    ] = False
    progress: Annotated[
        ProgressMode | bool,
        checked_by(checked_progress_mode),
        Field(description='``"bar"``, ``"lines"``, ``"off"`` (or False); auto is a bar in a terminal or a notebook.'),
        QUIET,
    ] = "off"

    @cached_property
    def selection(self) -> Selection:
        """Which questions are asked or scored; a sample without a seed draws a seed."""
        names = [each.name for each in fields(Selection) if each.name in type(self).model_fields]
        return Selection(**{name: getattr(self, name) for name in names})


ANSWERED_ONLY = Annotated[
    bool,
    Field(
        description="Only the questions that have a response; the others are left out and do not count as errors.",
    ),
    Cli(panel=SELECTION, is_common=True),
]


class ScoreRunOptions(ScoringOptions):
    """The options of ``score_run``."""

    answered_only: ANSWERED_ONLY = False
    config: Annotated[
        ConfigSource,
        AS_GIVEN,
        Field(description="A path, a dict or an EvaluationConfig; None for that in run.json."),
    ] = None
    dataset: Annotated[
        DatasetSource | None,
        AS_GIVEN,
        Field(description="A path, or the templates; None for the path in run.json."),
    ] = None
    measures: Annotated[
        Sequence[str] | None,
        checked_by(checked_texts),
        Field(
            description="Retrieval measures by ids, such as ``nDCG@10``, instead of ``retrieval.measures`` of the "
            "config."
        ),
    ] = None
    drop_missing: Annotated[
        bool,
        Field(
            description="Score the run although a plugin, matcher, evaluator or model that scored it is not loaded "
            "now; its metrics are dropped. Nothing is imported because the folder names it."
        ),
        Cli(),
    ] = False


class FolderOptions(ScoringOptions):
    """The options of what writes a new run."""

    output_dir: Annotated[
        str | PathLike[str] | None,
        checked_by(checked_path),
        Field(description="The run's folder; None writes nothing."),
    ] = None
    overwrite: Annotated[
        bool,
        Field(description="Replace an earlier run in the folder."),
        Cli(panel=FOLDER),
    ] = False
    label: Annotated[
        str | None, Field(description="A name for the run, kept in run.json."), Cli(panel=FOLDER), Recorded()
    ] = None
    href: Annotated[
        str | None, Field(description="A link for the run, kept in run.json."), Cli(panel=FOLDER), Recorded()
    ] = None
    tags: Annotated[
        Sequence[str],
        checked_by(checked_texts),
        Field(description="Tags for the run, kept in run.json."),
        Cli(name="--tag", help="A tag for the run, kept in run.json; may be repeated.", panel=FOLDER),
        Recorded(writes=list),
    ] = ()


class ScoreOptions(FolderOptions):
    """The options of ``score_responses``."""

    answered_only: ANSWERED_ONLY = False


# The options once they are checked: for type checkers what a field is then.
class CheckedScoreOptions(ScoreOptions):
    """The options of ``score_responses``, checked."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        gates: Sequence[GateConfig]
        output_dir: Path | None
        progress: ProgressMode


class CheckedScoreRunOptions(ScoreRunOptions):
    """The options of ``score_run``, checked; only ``config`` is as it was given, until it is replaced."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        gates: Sequence[GateConfig]
        progress: ProgressMode
