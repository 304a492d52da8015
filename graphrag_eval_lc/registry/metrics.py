"""Declares the metrics and judges of this package, and looks up any metric by its key, also those of users."""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final, Literal

from graphrag_eval_lc.registry.metric_spec import (
    MetricSpec,
    Over,
    cost_key,
    cost_spec,
    error_key,
    reason_key,
    undeclared_spec,
)
from graphrag_eval_lc.registry.plugins import declared

STEPS_SCORE: Final = "steps_score"
STEPS_SCORE_UPPER: Final = "steps_score_upper"
STEPS_RECALL: Final = "steps_recall"
STEPS_PRECISION: Final = "steps_precision"
STEPS_F1: Final = "steps_f1"
STEPS_ORDER: Final = "steps_order"
STEPS_COUNTS: Final = "steps_counts"
UNDECIDED: Final = "undecided"
OUTPUTS_CUT: Final = "outputs_cut"
ANSWER_RECALL: Final = "answer_recall"
ANSWER_PRECISION: Final = "answer_precision"
ANSWER_F1: Final = "answer_f1"
ANSWER_CORRECTNESS: Final = "answer_correctness"
ANSWER_AGREEMENT: Final = "answer_correctness_agreement"
ANSWER_REFUSED: Final = "answer_refused"
ANSWER_REFUSAL_RIGHT: Final = "answer_refusal_right"
ANSWER_RELEVANCE: Final = "answer_relevance"
ANSWER_RELEVANCE_BASELINE: Final = "answer_relevance_baseline"
ANSWER_RELEVANCE_RANK: Final = "answer_relevance_rank"
ANSWER_GROUNDING: Final = "answer_grounding"
ANSWER_GROUNDED: Final = "answer_grounded"
ANSWER_LINES: Final = "answer_lines_in_one_row"
ANSWER_UNGROUNDED: Final = "answer_ungrounded"
ANSWER_COVERAGE: Final = "answer_row_coverage"
ANSWER_VALUES: Final = "answer_values"
ANSWER_CHECKS: Final = "answer_checks"
ANSWER_EXACT: Final = "answer_exact"
RETRIEVAL_ANSWER: Final = "retrieval_answer"
RETRIEVAL_CONTEXT: Final = "retrieval_context"
RETRIEVAL_UTILIZATION: Final = "retrieval_utilization"
RETRIEVAL_IDS: Final = "retrieval_ids_"
RETRIEVAL_TEXT: Final = "retrieval_text_"
RETRIEVAL_MISSING: Final = "retrieval_missing"
RETRIEVAL_TEXT_MISSING: Final = "retrieval_text_missing"
INPUT_TOKENS: Final = "input_tokens"
OUTPUT_TOKENS: Final = "output_tokens"
TOTAL_TOKENS: Final = "total_tokens"
ELAPSED_SEC: Final = "elapsed_sec"
AGENT_COST: Final = "agent_cost"
JUDGES_COST: Final = "judges_cost"
COST: Final = "cost"

# An answer with at least this answer_f1 counts as right.
ANSWER_THRESHOLD: Final = 0.5

# The kinds of values that `answer_checks` compares with those of the reference.
CHECKED_KINDS: Final = ("entities", "numbers", "dates")

# The counts of claims that the judge of answer correctness finds.
TRUE_POSITIVES: Final = "answer_true_positives"
FALSE_POSITIVES: Final = "answer_false_positives"
FALSE_NEGATIVES: Final = "answer_false_negatives"
# The error key of answer correctness in earlier versions of graphrag-eval; results have it as well.
OLDER_CORRECTNESS_ERROR: Final = "answer_eval_error"
TokenKey = Literal["input_tokens", "output_tokens", "total_tokens"]
TOKENS: Final[tuple[TokenKey, ...]] = (INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS)

# The numbers of samples and questions in aggregates.
NUMBER_OF_SAMPLES: Final = "number_of_samples"
NUMBER_OF_QUESTIONS: Final = "number_of_questions"
NUMBER_OF_ERROR_SAMPLES: Final = "number_of_error_samples"
NUMBER_OF_SUCCESS_SAMPLES: Final = "number_of_success_samples"

# The metric of a run, unless another is named.
MAIN_METRIC: Final = STEPS_SCORE


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """The declaration of a judge: the metrics that one request, or a group of requests, computes."""

    key: str  # in ``judges: {metrics: […]}`` of the config
    details: tuple[str, ...] = ()  # its keys in results besides metrics, costs, reasons and errors
    needs_embeddings: bool = False

    @property
    def metrics(self) -> tuple[MetricSpec, ...]:
        """The metrics that it computes."""
        return tuple(spec for spec in BUILT_IN if spec.judge == self.key)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that it may write, each once."""
        return tuple(dict.fromkeys((*self.details, *(key for spec in self.metrics for key in spec.keys))))

    @property
    def over(self) -> Over:
        """Whether it judges ``questions``, or single ``steps``."""
        return self.metrics[0].over


def _spec(key: str, title: str, requires: str = "", source: str = "this project", **more: Any) -> MetricSpec:
    return MetricSpec(key=key, title=title, requires=requires, source=source, **more)


def _further_keys(name: str) -> dict[str, Any]:
    return {"cost_key": cost_key(name), "reason_key": reason_key(name), "error_key": error_key(name)}


def _of_contexts(judge: str, whats: tuple[str, ...], against: str, requires: str, source: str) -> Iterator[MetricSpec]:
    """Declare recall, precision and F1 of contexts; F1 has no reason and no error."""
    for what in whats:
        key, title = f"{judge}_{what}", f"{what} of the contexts against {against}"
        part_of = None if what == "f1" else f"{judge}_f1"
        more = {"cost_key": cost_key(key)} if what == "f1" else _further_keys(key)
        yield _spec(key, title, requires, source, part_of=part_of, judge=judge, **_OF_RETRIEVAL, **more)


def _spent(key: str, title: str, unit: str, requires: str, source: str, **more: Any) -> MetricSpec:
    spent = {"kind": "spent", "unit": unit, "range": (0.0, None), "spent_by": "agent"}
    return _spec(key, title, requires, source, **{**spent, **more})


def _dollars(key: str, title: str, **more: Any) -> MetricSpec:
    source = "genai-prices, or `prices` in the config"
    return _spent(key, title, "usd", "models with a known price", source, settings=("prices",), **more)


# Fields that several metrics share. Metrics of kind ``count`` describe other values, and so have no worst value.
_CORRECTNESS: Final[dict[str, Any]] = {"judge": ANSWER_CORRECTNESS, **_further_keys(ANSWER_CORRECTNESS)}
_RELEVANCE: Final[dict[str, Any]] = {"judge": ANSWER_RELEVANCE, **_further_keys(ANSWER_RELEVANCE)}
_BY_RELEVANCE: Final[dict[str, Any]] = {"kind": "count", "part_of": ANSWER_RELEVANCE, **_RELEVANCE}
_OF_STEPS: Final[dict[str, Any]] = {"needs": "reference_steps", "settings": ("steps", "sparql")}
_OF_RETRIEVAL: Final[dict[str, Any]] = {"over": "steps", "needs": "retrieval_steps", "settings": ("retrieval",)}
_RETRIEVED: Final[dict[str, Any]] = {"over": "steps", "is_family": True, "settings": ("steps", "retrieval")}
_NUMBER: Final[dict[str, Any]] = {"kind": "count", "unit": "count", "lower_is_better": True}
_OF_CHECKS: Final[dict[str, Any]] = {"settings": (ANSWER_CHECKS, "steps")}
_GROUNDED: Final[dict[str, Any]] = {"settings": (ANSWER_GROUNDING, "steps")}
_COUNT: Final[dict[str, Any]] = {**_NUMBER, "range": (0.0, None), "is_summed_up": False}
_GROUNDING: Final = "`answer_grounding: {enabled: true}`"
_CLAIMS, _VOTES = "a model, `reference_answer`", "a model, `reference_answer`, votes"
_LYNXIUS = "Lynxius and graphrag-eval (TP, FP, FN)"
_OTHER_QUESTIONS = "a model, embeddings, other questions"
_TOKENS: Final = ("tokens", "models that report usage", "the providers")

# In the order of the aggregates: graphrag-eval's, then what it does not have.
BUILT_IN: Final = (
    *(
        _spec(
            key,
            f"{key.removeprefix('answer_')} of the answer's claims",
            _CLAIMS,
            _LYNXIUS,
            needs="reference_answer",
            part_of=ANSWER_F1,
            **_CORRECTNESS,
        )
        for key in (ANSWER_RECALL, ANSWER_PRECISION)
    ),
    _spec(
        ANSWER_RELEVANCE,
        "how near the answer is to the question",
        "a model, embeddings",
        "ragas (answer relevancy)",
        range=(-1.0, 1.0),
        usual_range=(0.0, 1.0),
        **_RELEVANCE,
    ),
    _spec(
        ANSWER_RELEVANCE_BASELINE,
        "how near the answer is to the dataset's other questions",
        _OTHER_QUESTIONS,
        range=(-1.0, 1.0),
        **_BY_RELEVANCE,
    ),
    _spec(
        ANSWER_RELEVANCE_RANK,
        "the rank of the question among all of the dataset, by how near the answer is; 1 is the best",
        _OTHER_QUESTIONS,
        range=(1.0, None),
        **{**_BY_RELEVANCE, **_NUMBER},
    ),
    _spec(ANSWER_F1, "f1 of the answer's claims", _CLAIMS, _LYNXIUS, needs="reference_answer", **_CORRECTNESS),
    *(
        _spec(key, title, requires, kind="count", part_of=ANSWER_F1, judge=ANSWER_CORRECTNESS)
        for key, title, requires in (
            (ANSWER_REFUSED, "whether the answer refuses or asks back", "the judge of answer correctness"),
            (ANSWER_REFUSAL_RIGHT, "whether the reference refuses too", "an answer that refuses, `reference_answer`"),
        )
    ),
    _spec(
        ANSWER_AGREEMENT,
        "the share of a judge's votes that say what most of them say",
        _VOTES,
        kind="count",
        part_of=ANSWER_F1,
        **_CORRECTNESS,
    ),
    _spec(
        STEPS_SCORE,
        "the share of the steps in the last reference group that the agent took",
        "`reference_steps`",
        "graphrag-eval, with the best assignment of steps",
        **_OF_STEPS,
    ),
    _spec(
        STEPS_SCORE_UPPER,
        "steps_score if all undecided steps fitted",
        "`reference_steps`, undecided ones among them",
        upper_of=STEPS_SCORE,
        **_OF_STEPS,
    ),
    *(
        _spec(key, title, "`reference_steps`", part_of=part_of, **_OF_STEPS)
        for key, title, part_of in (
            (STEPS_RECALL, "the mean grade of the reference steps", STEPS_F1),
            (STEPS_PRECISION, "the grades over the calls that could have earned one", STEPS_F1),
            (STEPS_F1, "the harmonic mean of recall and precision of the steps", STEPS_SCORE),
            (STEPS_ORDER, "the share of matched steps that are in the reference's order", STEPS_SCORE),
        )
    ),
    _spec(
        ANSWER_EXACT,
        "answers with all that the reference has, and nothing else of its columns",
        "`reference_entities`, or `answer_checks: {infer: required_columns}`",
        reason_key=reason_key(ANSWER_EXACT),
        **_OF_CHECKS,
    ),
    *(
        _spec(
            key,
            title,
            _GROUNDING,
            reason_key=reason_key(key) if part_of is None else None,
            part_of=part_of,
            **_GROUNDED,
        )
        for key, title, part_of in (
            (ANSWER_GROUNDED, "the answer's values that the agent's steps returned", None),
            (
                ANSWER_LINES,
                "the answer's items, table rows and parts of lists whose values are in one row",
                ANSWER_GROUNDED,
            ),
            (ANSWER_COVERAGE, "the rows of the last matched query that the answer mentions", ANSWER_GROUNDED),
        )
    ),
    *(
        _spec(
            f"answer_{kind}_{measure}",
            f"{measure} of the {kind} that the reference has",
            f"`reference_{kind}`, or `answer_checks: {{infer: required_columns}}`",
            part_of=ANSWER_EXACT,
            **_OF_CHECKS,
        )
        for kind in CHECKED_KINDS
        for measure in ("precision", "recall", "f1")
    ),
    _spec(
        ANSWER_UNGROUNDED,
        "values of the answer that no step returned",
        _GROUNDING,
        range=(0.0, None),
        part_of=ANSWER_GROUNDED,
        **{**_GROUNDED, **_NUMBER},
    ),
    *(
        _spent(key, title, *_TOKENS, heading=heading, part_of=None if key == TOTAL_TOKENS else TOTAL_TOKENS)
        for key, heading, title in (
            (INPUT_TOKENS, "Input tokens", "tokens that the agent's models read"),
            (OUTPUT_TOKENS, "Output tokens", "tokens that the agent's models wrote"),
            (TOTAL_TOKENS, "Tokens", "tokens of the agent's models"),
        )
    ),
    _spent(ELAPSED_SEC, "seconds that the agent took", "seconds", "", "measured", heading="Time"),
    _dollars(AGENT_COST, "what the agent's models cost", heading="Agent's cost"),
    *_of_contexts(
        RETRIEVAL_ANSWER,
        ("precision", "recall", "f1"),
        "the reference answer",
        "a model, `reference_answer`, texts",
        "graphrag-eval and ragas (context recall and precision)",
    ),
    *_of_contexts(
        RETRIEVAL_CONTEXT,
        ("recall", "precision", "f1"),
        "the reference step's texts",
        "a model, a reference step with texts",
        "graphrag-eval",
    ),
    _spec(
        RETRIEVAL_UTILIZATION,
        "whether the contexts that the answer rests on are at the top",
        "a model, texts",
        "ragas (context utilization)",
        judge=RETRIEVAL_UTILIZATION,
        **_OF_RETRIEVAL,
        **_further_keys(RETRIEVAL_UTILIZATION),
    ),
    _spec(
        RETRIEVAL_IDS,
        "measures of the retrieved ids",
        "relevant ids",
        "trec_eval; with groups AutoRAG",
        needs="relevant_ids",
        missing_key=RETRIEVAL_MISSING,
        **_RETRIEVED,
    ),
    _spec(
        RETRIEVAL_TEXT,
        "measures of the retrieved texts",
        "texts on both sides",
        "ragas (`NonLLMContextPrecisionWithReference` and recall); F1 of both",
        needs="relevant_texts",
        members=("precision", "recall", "f1"),
        missing_key=RETRIEVAL_TEXT_MISSING,
        **_RETRIEVED,
    ),
    *(
        _spec(key, title, "reference retrieval steps", settings=("steps", "retrieval"), **_COUNT)
        for key, title in (
            (RETRIEVAL_MISSING, "reference steps of retrieval that nothing fulfilled"),
            (RETRIEVAL_TEXT_MISSING, "those of them that have texts"),
        )
    ),
    *(
        _spec(key, title, "`reference_steps`", counted_in=STEPS_COUNTS, settings=("steps", "sparql"), **_COUNT)
        for key, title in (
            (UNDECIDED, "reference steps of which it is not known whether a step fulfils them"),
            (OUTPUTS_CUT, "outputs that end before their end"),
        )
    ),
    _dollars(JUDGES_COST, "what all judges cost", heading="Judges' cost", spent_by="judges", is_summed_up=False),
    _dollars(COST, "what agent and judges cost", spent_by=None, is_summed_up=False),
)

JUDGES: Final = (
    JudgeSpec(
        key=ANSWER_CORRECTNESS,
        details=(
            TRUE_POSITIVES,
            FALSE_POSITIVES,
            FALSE_NEGATIVES,
            "answer_covered_claims",
            "answer_reference_claims_count",
            "answer_actual_claims_count",
            "answer_matching_claims_count",
            "answer_claim_votes",
            OLDER_CORRECTNESS_ERROR,
        ),
    ),
    JudgeSpec(key=ANSWER_RELEVANCE, needs_embeddings=True),
    JudgeSpec(key=RETRIEVAL_ANSWER),
    JudgeSpec(key=RETRIEVAL_CONTEXT),
    JudgeSpec(key=RETRIEVAL_UTILIZATION),
)

_BUILT_IN = {spec.key: spec for spec in BUILT_IN if not spec.is_family}
FAMILIES: Final = {spec.key: spec for spec in BUILT_IN if spec.is_family}
_COSTS = {spec.cost_key: cost_spec(spec.cost_key) for spec in BUILT_IN if spec.cost_key is not None}


@dataclass(frozen=True, slots=True)
class RegisteredMetric:
    """A metric that a user registered, and the function ``(question, response) -> float | None`` that measures it."""

    spec: MetricSpec
    function: Callable[..., Any]


# The metrics that users registered, and those declared in the run.json of runs that are being read.
metrics_of_users: Final[dict[str, RegisteredMetric]] = declared["metric"]
metrics_of_records: Final[ContextVar[Mapping[str, MetricSpec]]] = ContextVar("metrics_of_records")
_NONE: Final[Mapping[str, MetricSpec]] = {}


def metric_spec(key: str) -> MetricSpec:
    """Return the declaration of a metric. If none exists, it is taken from a run's record, or guessed from the name.

    Example:
        >>> metric_spec("answer_f1").needs, metric_spec("retrieval_ids_ndcg@10").over, metric_spec("tone").kind
        ('reference_answer', 'steps', 'score')
    """
    if key in metrics_of_users:
        return metrics_of_users[key].spec
    return _BUILT_IN.get(key) or _COSTS.get(key) or metrics_of_records.get(_NONE).get(key) or _spec_by_name(key)


@lru_cache(maxsize=1024)
def _spec_by_name(key: str) -> MetricSpec:
    family = next((spec for spec in FAMILIES.values() if key.startswith(spec.key)), None)
    if family is None:
        return undeclared_spec(key)
    return replace(family, key=key, title=key, is_family=False, members=(), family=family.key)


def is_declared(key: str) -> bool:
    """Return whether a metric is built in or registered."""
    return key in metrics_of_users or is_built_in(key)


def is_built_in(key: str) -> bool:
    """Return whether a metric is built in, or a member of a built-in family."""
    return key in _BUILT_IN or key in _COSTS or key.startswith(tuple(FAMILIES))


@cache
def aggregated_metrics(over: str) -> tuple[MetricSpec, ...]:
    """Return the metrics over ``questions`` or ``steps`` with statistics in aggregates: scores first, then costs.

    Families are left out, as their members depend on the config. Registered metrics are left out, as results name them.
    """
    specs = [spec for spec in BUILT_IN if spec.over == over and spec.is_summed_up and not spec.is_family]
    costs = dict.fromkeys(spec.cost_key for spec in specs if spec.cost_key is not None)
    return (*specs, *(_COSTS[key] for key in costs))


COUNTED: Final = tuple(spec for spec in BUILT_IN if spec.counted_in is not None)
UPPER_BOUNDS: Final = {spec.key: spec.upper_of for spec in BUILT_IN if spec.upper_of is not None}


def error_keys(over: str) -> tuple[str, ...]:
    """Return the error keys of the judges of ``questions`` or ``steps``, each once."""
    specs = (spec for spec in BUILT_IN if spec.over == over)
    return tuple(dict.fromkeys(spec.error_key for spec in specs if spec.error_key is not None))


def own_metrics(summary: Mapping[str, Any]) -> list[str]:
    """Return the metrics in a part of aggregates that are not built in, declared or not, without costs."""
    return [
        metric
        for metric, statistics in summary.items()
        if isinstance(statistics, Mapping)
        and "mean" in statistics
        and not is_built_in(metric)
        and metric_spec(metric).spent_by != "judges"
    ]
