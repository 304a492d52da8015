"""The options of scoring: each is one field, which Python, the command line and run.json share."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from graphrag_eval_lc.benchmark.option_fields import (
    ENGINE,
    FOLDER,
    QUIET,
    SELECTION,
    Cli,
    ProgressMode,
    Recorded,
)
from graphrag_eval_lc.benchmark.options import (
    AS_GIVEN,
    Options,
    checked_by,
    checked_evaluators,
    checked_gates,
    checked_path,
    checked_progress_mode,
    checked_texts,
    completed_by,
    loaded_config,
    says,
)
from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_gates
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, GateConfig, locate
from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.records import Template

RAY: Final = "ray"
PROGRESS = Annotated[
    ProgressMode | bool,
    checked_by(checked_progress_mode),
    says('``"bar"``, ``"lines"``, ``"off"`` (or False); auto is a bar in a terminal or a notebook.'),
    QUIET,
]
_AnsweredOnly = Annotated[
    bool,
    says("Only the questions that have a response; the others are left out and do not count as errors."),
    Cli(SELECTION, is_common=True),
]


class ScoringOptions(Options):
    """The options that ``run_benchmark``, ``score_responses`` and ``score_run`` share: what is scored, and how."""

    template_ids: Annotated[
        Sequence[str],
        AS_GIVEN,
        says("Only the questions of these templates."),
        Cli(
            SELECTION,
            "ID",
            name="--template",
            help="Only the questions of this template; may be repeated.",
            is_common=True,
        ),
    ] = ()
    question_ids: Annotated[
        Sequence[str],
        AS_GIVEN,
        says("Only the questions with these ids."),
        Cli(SELECTION, "ID", name="--question", help="Only the question with this id; may be repeated."),
    ] = ()
    llm: Annotated[Any, says("A model that judges, instead of that of the config.")] = None
    embeddings: Annotated[Any, says("A model for embeddings, instead of that of the config.")] = None
    config: Annotated[
        ConfigSource,
        completed_by(loaded_config),
        says("A path, a dict or an EvaluationConfig; None for the defaults.", validate_default=True),
    ] = None
    evaluators: Annotated[
        Sequence[Callable[..., Any] | str],
        checked_by(checked_evaluators),
        says(
            "Your functions that score each response, ``(question, response)``, or their specs as "
            "``package.module:function`` or ``path/to/file.py:function``; see ``run_evaluation``."
        ),
        Cli(
            None,
            "SPEC",
            name="--evaluator",
            help="Your function that scores each response, (question, response), as package.module:function or "
            "path/to/file.py:function; may be repeated.",
        ),
    ] = ()
    gates: Annotated[
        Any,
        checked_by(checked_gates),
        says(
            'Gates in addition to those of the config, such as ``["steps_score=0.9"]``; see ``gate_results``. '
            "Their names are checked before the agent is called; ``run.gate_results()`` says which the run passes."
        ),
    ] = ()
    engine: Annotated[
        Literal["ray"] | None,
        says(
            "``ray``: the workers of a Ray cluster call the agent or, if responses are scored without an agent, "
            "compare them. Otherwise this process does it."
        ),
        Cli(ENGINE, "ray"),
        Recorded(),
    ] = None
    ray_address: Annotated[
        str | None,
        says(
            "The address of the Ray cluster, such as ``auto`` or ``ray://head:10001``. By default that of "
            "RAY_ADDRESS, or a cluster that is started for the run."
        ),
        Cli(ENGINE, "ADDRESS"),
    ] = None
    workers: Annotated[
        int | None,
        says(
            "The most Ray workers; by default one for each question in flight or, if responses are scored, for "
            "each processor of the cluster.",
            ge=1,
        ),
        Cli(ENGINE, "N"),
    ] = None
    max_cost: Annotated[
        float | None,
        says("The most USD that the judges may cost; the rest is scored without them.", gt=0),
        Cli(None, "USD", is_common=True),
    ] = None
    judge_cache: Annotated[
        bool,
        says("Whether the judges' answers are cached in the folder and reused."),
        Cli(
            FOLDER,
            name="--no-cache",
            help="Do not use the cache: send all requests of the judges again.",
            default=False,
            converts=lambda is_off: not is_off,
        ),
    ] = True
    report: Annotated[
        bool,
        says(
            "Whether ``report.html`` is written into the folder. This needs the extra ``[report]``; without it "
            "``run.notes`` says how to get it."
        ),
    ] = True
    open_files: Annotated[
        bool,
        says(
            "Let the umask decide who may read new files, such as when another user uploads them. Otherwise only "
            "their owner may (0700 and 0600)."
        ),
        Cli(FOLDER),
    ] = False
    progress: PROGRESS = "off"

    @cached_property
    def selection(self) -> Selection:
        """The selection of questions; ``sample`` without a seed draws one."""
        names = [each.name for each in fields(Selection) if each.name in type(self).model_fields]
        return Selection(**{name: getattr(self, name) for name in names})

    def check_gates(self, templates: Sequence[Template]) -> list[str]:
        """Check the names in all gates; return warnings about names that only an evaluator may produce."""
        config: Any = self.config
        if not config.gates and not self.gates:
            return []
        models = {"has_llm": self.llm is not None, "has_embeddings": self.embeddings is not None}
        evaluators: Any = self.evaluators
        known, ids = KnownMetrics.of(config, evaluators, **models), [str(each["template_id"]) for each in templates]
        try:
            doubts = check_gates(config.gates, known, ids, of_config=True)
        except ConfigError as problem:
            if isinstance(self.config_source, str | PathLike):
                locate(problem, self.config_source)
            raise
        return list(dict.fromkeys([*doubts, *check_gates(self.gates, known, ids, of_config=False)]))


class ScoreRunOptions(ScoringOptions):
    """The options of ``score_run``."""

    answered_only: _AnsweredOnly = False
    config: Annotated[
        ConfigSource, AS_GIVEN, says("A path, a dict or an EvaluationConfig; None for that in run.json.")
    ] = None
    dataset: Annotated[
        DatasetSource | None, AS_GIVEN, says("A path, or the templates; None for the path in run.json.")
    ] = None
    measures: Annotated[
        Sequence[str] | None,
        checked_by(checked_texts),
        says("Retrieval measures by ids, such as ``nDCG@10``, instead of ``retrieval.measures`` of the config."),
    ] = None
    drop_missing: Annotated[
        bool,
        says(
            "Score the run although a plugin, matcher, evaluator or model that scored it is not loaded now; its "
            "metrics are dropped. Nothing is imported because the folder names it."
        ),
        Cli(),
    ] = False


class FolderOptions(ScoringOptions):
    """The options of every function that writes a new run."""

    output_dir: Annotated[
        str | PathLike[str] | None, checked_by(checked_path), says("The run's folder; None writes nothing.")
    ] = None
    overwrite: Annotated[bool, says("Replace an earlier run in the folder."), Cli(FOLDER)] = False
    label: Annotated[str | None, says("A name for the run, kept in run.json."), Cli(FOLDER), Recorded()] = None
    href: Annotated[str | None, says("A link for the run, kept in run.json."), Cli(FOLDER), Recorded()] = None
    tags: Annotated[
        Sequence[str],
        checked_by(checked_texts),
        says("Tags for the run, kept in run.json."),
        Cli(FOLDER, name="--tag", help="A tag for the run, kept in run.json; may be repeated."),
        Recorded(writes=list),
    ] = ()


class ScoreOptions(FolderOptions):
    """The options of ``score_responses``."""

    answered_only: _AnsweredOnly = False


class CheckedScoreOptions(ScoreOptions):
    """The options of ``score_responses``, checked."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        gates: Sequence[GateConfig]
        output_dir: Path | None
        progress: ProgressMode


class CheckedScoreRunOptions(ScoreRunOptions):
    """The options of ``score_run``, checked; ``config`` stays as it was passed, until it is replaced."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        gates: tuple[GateConfig, ...]
        progress: ProgressMode
