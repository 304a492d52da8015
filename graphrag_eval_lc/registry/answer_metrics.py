"""Declares the metrics that compare an answer with rows: those that the agent's steps returned, or the reference's."""

from typing import Final

from graphrag_eval_lc.registry.metric_spec import MetricSpec, reason_key

ANSWER_GROUNDING: Final = "answer_grounding"
ANSWER_GROUNDED: Final = "answer_grounded"
ANSWER_LINES: Final = "answer_lines_in_one_row"
ANSWER_UNGROUNDED: Final = "answer_ungrounded"
ANSWER_COVERAGE: Final = "answer_row_coverage"
ANSWER_VALUES: Final = "answer_values"
ANSWER_CHECKS: Final = "answer_checks"
ANSWER_EXACT: Final = "answer_exact"
CHECKED_KINDS: Final = ("entities", "numbers", "dates")

OF_ANSWERS_WITH_ROWS: Final = (
    MetricSpec(
        key=ANSWER_EXACT,
        title="answers with all that the reference has, and nothing else of its columns",
        requires="`reference_entities`, or `answer_checks: {infer: required_columns}`",
        settings=(ANSWER_CHECKS, "steps"),
        reason_key=reason_key(ANSWER_EXACT),
        source="this project",
    ),
    *(
        MetricSpec(
            key=key,
            title=title,
            requires="`answer_grounding: {enabled: true}`",
            part_of=part_of,
            settings=(ANSWER_GROUNDING, "steps"),
            reason_key=reason_key(key) if part_of is None else None,
            source="this project",
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
        MetricSpec(
            key=f"answer_{kind}_{measure}",
            title=f"{measure} of the {kind} that the reference has",
            requires=f"`reference_{kind}`, or `answer_checks: {{infer: required_columns}}`",
            part_of=ANSWER_EXACT,
            settings=(ANSWER_CHECKS, "steps"),
            source="this project",
        )
        for kind in CHECKED_KINDS
        for measure in ("precision", "recall", "f1")
    ),
    MetricSpec(
        key=ANSWER_UNGROUNDED,
        title="values of the answer that no step returned",
        kind="count",
        unit="count",
        lower_is_better=True,
        range=(0.0, None),
        part_of=ANSWER_GROUNDED,
        requires="`answer_grounding: {enabled: true}`",
        settings=(ANSWER_GROUNDING, "steps"),
        source="this project",
    ),
)
