"""The figures of a run in words that people read while it goes on."""

import math

from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.runner.events import RunEvent
from graphrag_eval_lc.runner.run_state import RunSnapshot
from graphrag_eval_lc.texts import counted

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def progress_line(run: RunSnapshot) -> str:
    """Give how a run stands as one line.

    Example:
        >>> progress_line(RunSnapshot(2000, 120, 3, 5, 8, 8, 8, 1_234_567, 0, 0.7123, 212, 34.0, 3300, None, False))
        '120 of 2,000 done, 3 errors, 5 retries, 8 in flight, 1.2M tokens, 34/min, about 55 min left, steps_score 0.712'
    """
    return ", ".join((f"{run.done:,} of {run.total:,} done", *progress_figures(run).values()))


def progress_figures(run: RunSnapshot) -> dict[str, str]:
    """Give what is known of a run beside how many questions are done, by the name of the figure, in reading order."""
    left = run.seconds_left
    figures = {
        "errors": counted(run.errors, "error"),
        "retries": counted(run.retries, "retry", "retries") if run.retries else "",
        "in_flight": _in_flight(run),
        "tokens": _tokens(run),
        "rate": "" if run.per_minute is None else f"{rate_text(run.per_minute)}/min",
        "left": "" if not left else f"about {duration_text(left)} left",
        "stopping": f"stopping ({run.stopping})" if run.stopping and not run.ended else "",
        "elapsed": f"in {duration_text(run.elapsed_sec)}" if run.ended and run.elapsed_sec is not None else "",
        MAIN_METRIC: "" if run.steps_score is None else f"{MAIN_METRIC} {run.steps_score:.3f}",
    }
    return {name: text for name, text in figures.items() if text}


def message_of(event: RunEvent) -> str | None:
    """Give what an event tells people at once; None for those that only change the figures."""
    if event.kind == "warning":
        return f"Warning: {event.fields['message']}"
    return str(event.fields["message"]) if event.kind == "run_stopping" else None


def amount_text(number: int) -> str:
    """Give a large number in short.

    Example:
        >>> amount_text(950), amount_text(12_345), amount_text(1_234_567), amount_text(2_000_000_000)
        ('950', '12.3k', '1.2M', '2.0B')
    """
    if number < 1000:
        return str(number)
    amount = float(number)
    for unit in "kM":
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f}{unit}"
    return f"{amount / 1000:.1f}B"


def rate_text(per_minute: float) -> str:
    """Give a rate with as many digits as it is worth.

    Example:
        >>> rate_text(0.25), rate_text(3.14), rate_text(1234.5)
        ('0.25', '3.1', '1,234')
    """
    return f"{per_minute:.2g}" if per_minute < 1 else f"{per_minute:.1f}" if per_minute < 10 else f"{per_minute:,.0f}"


def duration_text(seconds: float) -> str:
    """Give a time span in the units that people would say.

    Example:
        >>> duration_text(7.2), duration_text(3300), duration_text(7800), duration_text(200_000)
        ('8 s', '55 min', '2 h 10 min', '2 days 8 h')
    """
    if seconds < 1.5 * _MINUTE:
        return f"{math.ceil(seconds)} s"
    minutes = round(seconds / _MINUTE)
    if minutes < 90:
        return f"{minutes} min"
    if seconds < 2 * _DAY:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / _HOUR)
    return f"{hours // 24:,} days {hours % 24} h"


def _in_flight(run: RunSnapshot) -> str:
    if not run.in_flight:
        return ""
    lowered = run.limit is not None and run.max_concurrency is not None and run.limit < run.max_concurrency
    return f"{run.in_flight:,} in flight" + (f" (limit {run.limit:,})" if lowered else "")


def _tokens(run: RunSnapshot) -> str:
    if not run.tokens:
        return ""
    return ("at least " if run.tokens_unknown else "") + f"{amount_text(run.tokens)} tokens"
