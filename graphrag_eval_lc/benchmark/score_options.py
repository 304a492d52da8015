"""The options of scoring: each is one field, from which Python, the command line and run.json take it.

Heavy modules are imported where they are needed, so that ``--help`` need not wait for them.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, Self, cast

from pydantic import Field, model_validator

from graphrag_eval_lc.benchmark.option_checks import (
    AS_GIVEN,
    POSITIVE,
    Checked,
    Options,
    checked_evaluators,
    checked_gates,
    checked_ids,
    checked_measures,
    checked_path,
    checked_progress_mode,
    checked_texts,
    loaded_config,
    refuse_conflicts_of,
)
from graphrag_eval_lc.benchmark.option_fields import ENGINE, FOLDER, QUIET, SELECTION, Cli, ProgressMode, Recorded

if TYPE_CHECKING:
    from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, GateConfig
    from graphrag_eval_lc.dataset.loading import DatasetSource
    from graphrag_eval_lc.dataset.selection import Selection

RAY: Final = "ray"

TemplateIds = Annotated[
    Sequence[str],
    Checked(checked_ids),
    Field(description="Only the questions of these templates."),
    Cli(
        name="--template",
        help="Only the questions of this template; may be repeated.",
        panel=SELECTION,
        metavar="ID",
        is_common=True,
    ),
]
QuestionIds = Annotated[
    Sequence[str],
    Checked(checked_ids),
    Field(description="Only the questions with these ids. Only what is selected is scored."),
    Cli(
        name="--question",
        help="Only the question with this id; may be repeated.",
        panel=SELECTION,
        metavar="ID",
        is_common=True,
    ),
]


Progress = Annotated[
    ProgressMode | bool,
    Checked(checked_progress_mode),
    Field(description='"bar", "lines", "off" (or False); auto is a bar in a terminal or a notebook.'),
    QUIET,
]


Engine = Annotated[
    Literal["ray"] | None,
    Field(
        description="None: all is done in this process; ``ray``: the workers of a Ray cluster ask the agent, or, where "
        "responses are scored without one, compare them with their references."
    ),
    Cli(
        type=str,
        help="ray: have the workers of a Ray cluster do it; else this process does. They ask the agent, or compare the "
        "responses that are scored.",
        metavar="ray",
        panel=ENGINE,
    ),
    Recorded(),
]
RayAddress = Annotated[
    str | None,
    Field(
        description="The cluster of Ray, such as ``auto`` or ``ray://head:10001``; None: that of RAY_ADDRESS, or one "
        "that is started here and ends with the run."
    ),
    Cli(
        help="The cluster of Ray, such as auto or ray://head:10001; else that of RAY_ADDRESS, or one that is started "
        "here.",
        metavar="ADDRESS",
        panel=ENGINE,
    ),
]
RayWorkers = Annotated[
    int | None,
    Field(ge=1, description="How many workers of Ray there are; None: one for each processor of the cluster."),
    Cli(
        help="How many workers of Ray there are; else one for each processor of the cluster.",
        metavar="N",
        panel=ENGINE,
    ),
]


class SelectionOptions(Options):
    """Which questions are scored."""

    template_ids: TemplateIds = ()
    question_ids: QuestionIds = ()
    answered_only: Annotated[
        bool,
        Field(
            description="Only the questions that have a response; the others are no error samples, and no part of the "
            "aggregates."
        ),
        Cli(
            help="Only the questions that have a response; the others are left out, not failed.",
            panel=SELECTION,
            is_common=True,
        ),
    ] = False

    @cached_property
    def selection(self) -> "Selection":
        """Which questions are scored."""
        from graphrag_eval_lc.dataset.selection import Selection

        return Selection(
            template_ids=tuple(self.template_ids),
            question_ids=tuple(self.question_ids),
            answered_only=self.answered_only,
        )


class EngineOptions(Options):
    """Where responses are compared with their references."""

    engine: Engine = None
    ray_address: RayAddress = None
    workers: RayWorkers = None

    @model_validator(mode="after")
    def _without_conflicts(self) -> Self:
        refuse_conflicts_of(self)
        return self


class ScoringOptions(Options):
    """How responses are scored, whatever they come from."""

    llm: Annotated[Any, Field(description="A model that judges, in place of that of the config.")] = None
    embeddings: Annotated[Any, Field(description="A model for embeddings, likewise.")] = None
    config: Annotated[
        "ConfigSource",
        Checked(loaded_config, takes_fields=True),
        Field(description="A path, a dict or an EvaluationConfig; None for the defaults."),
    ] = None
    evaluators: Annotated[
        Sequence[Callable[..., Any] | str],
        Checked(checked_evaluators),
        Field(
            description="Functions of your own that score each response, ``(question, response)``, or their specs as "
            "``package.module:function``; see ``run_evaluation``."
        ),
        Cli(
            name="--evaluator",
            help="A function of your own that scores each response, (question, response), as package.module:function "
            "or path/to/file.py:function; may be repeated.",
            metavar="SPEC",
        ),
    ] = ()
    gates: Annotated[
        Any,
        Checked(checked_gates),
        Field(
            description='Gates beside those of the config, such as ``["steps_score=0.9", "elapsed_sec.p95=30"]``; see '
            "``gate_results``. Their names are checked before anything is asked, and ``run.gate_results()`` says which "
            "are passed."
        ),
    ] = ()
    max_cost: Annotated[
        float | None,
        Field(
            gt=0,
            description="USD that the judges may cost now: a request is not sent where it could pass that, and what "
            "is left is scored without them. Answers that the folder has cost nothing.",
        ),
        POSITIVE,
        Cli(
            help="USD that the judges may cost; the rest is scored without them.",
            metavar="USD",
            least=0,
            is_common=True,
        ),
    ] = None
    judge_cache: Annotated[
        bool,
        Field(description="Whether the judges' answers are kept in the folder and not asked for again."),
        Cli(
            name="--no-cache",
            help="Ask the judges again for what the folder has their answers to.",
            panel=FOLDER,
            default=False,
            converts=lambda is_off: not is_off,
        ),
    ] = True
    report: Annotated[
        bool,
        Field(
            description="Whether ``report.html`` is written into the folder. Without the extra ``[report]`` it is left "
            "out, and ``run.notes`` says how to get it."
        ),
    ] = True
    open_files: Annotated[
        bool,
        Field(
            description="Whether the umask decides who may read the folder and the files that are made, as where "
            "another user uploads them. Otherwise they are for their owner alone (0700 and 0600)."
        ),
        Cli(
            help="Let the umask decide who may read the files that are made, as where another user uploads them; "
            "otherwise they are for you alone.",
            panel=FOLDER,
        ),
    ] = False


class ScoreRunOptions(ScoringOptions, EngineOptions, SelectionOptions):
    """The options of ``score_run``."""

    config: Annotated[
        "ConfigSource",
        AS_GIVEN,
        Field(description="A path, a dict or an EvaluationConfig; None for what stands in run.json."),
    ] = None
    dataset: Annotated[
        "DatasetSource | None",
        AS_GIVEN,
        Field(description="A path, or the templates; None for the path that stands in run.json."),
    ] = None
    measures: Annotated[
        Sequence[str] | None,
        Checked(checked_measures),
        Field(
            description="What is measured of retrieved ids, such as ``nDCG@10``, in place of ``retrieval.measures`` of "
            "the config; None leaves them."
        ),
    ] = None
    drop_missing: Annotated[
        bool,
        Field(
            description="Whether the run is scored although something that scored it is missing: a matcher or a "
            "registered metric or evaluator (load its plugin again), an evaluator, or a model that was passed. Nothing "
            "is imported because the folder names it."
        ),
        Cli(
            help="With a run's folder: score it although a plugin, a matcher or an evaluator that scored it is not "
            "given.",
            before="max_cost",
        ),
    ] = False
    progress: Progress = "off"


class RunFolderOptions(ScoringOptions):
    """How responses are scored into a folder of their own."""

    output_dir: Annotated[
        str | PathLike[str] | None, Checked(checked_path), Field(description="The run's folder; None writes nothing.")
    ] = None
    overwrite: Annotated[
        bool,
        Field(description="Replace an earlier run in the folder."),
        Cli(panel=FOLDER, is_common=True, before="judge_cache"),
    ] = False
    label: Annotated[
        str | None, Field(description="A name for the run, kept in run.json."), Cli(panel=FOLDER), Recorded()
    ] = None
    href: Annotated[
        str | None, Field(description="A link for the run, kept in run.json."), Cli(panel=FOLDER), Recorded()
    ] = None
    tags: Annotated[
        Sequence[str],
        Checked(checked_texts),
        Field(description="Marks for the run, kept in run.json."),
        Cli(name="--tag", help="A mark for the run, kept in run.json; may be repeated.", panel=FOLDER),
        Recorded(writes=list),
    ] = ()


class ScoreOptions(RunFolderOptions, EngineOptions, SelectionOptions):
    """The options of ``score_responses``."""

    progress: Progress = "off"


class ScoredBy(Protocol):
    """What scores responses, and what that may cost: the checked options of every call that scores."""

    @property
    def config(self) -> "EvaluationConfig":
        """The configuration."""

    @property
    def evaluators(self) -> tuple[Callable[..., Any], ...]:
        """The functions that score."""

    @property
    def gates(self) -> "Sequence[GateConfig]":
        """The gates beside those of the configuration."""

    @property
    def llm(self) -> Any:
        """A model that judges in place of that of the config."""

    @property
    def embeddings(self) -> Any:
        """A model for embeddings, likewise."""

    @property
    def judge_cache(self) -> bool:
        """Whether the judges' answers are kept."""

    @property
    def max_cost(self) -> float | None:
        """USD that may be spent."""


# The options once they are checked: for type checkers what a field is then, where that is less than what may be given.
class CheckedScoreOptions(ScoreOptions):
    """The options of ``score_responses``, checked."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        output_dir: Path | None
        tags: tuple[str, ...]


class CheckedScoreRunOptions(ScoreRunOptions):
    """The options of ``score_run``, checked."""

    if TYPE_CHECKING:
        evaluators: tuple[Callable[..., Any], ...]

    def scored_by(self, config: "EvaluationConfig") -> ScoredBy:
        """Return them with the configuration that counts, where it was not given: that in run.json."""
        return cast("ScoredBy", self.replaced(config=config))
