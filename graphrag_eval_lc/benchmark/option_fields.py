"""Marks for the fields of option models: how the command line shows them, what run.json keeps, which exclude others.

This file does not import pydantic, so that the command line starts fast.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal, NamedTuple

from graphrag_eval_lc.errors import OptionError

ProgressMode = Literal["auto", "bar", "lines", "off"]

# The panels of --help, in their order.
SELECTION = "Which questions"
ASKING = "Asking the questions"
ENGINE = "Execution engine"
CAPTURE = "Recording the agent's steps"
ENDING = "Limits that end the run early"
GATES = "Gates: when the command exits with 1"
FOLDER = "The run folder"
DISPLAY = "Output"
MORE = "More"
PANELS = (None, SELECTION, ASKING, ENGINE, CAPTURE, ENDING, GATES, FOLDER, DISPLAY, MORE)


class _OfField:
    """The type of ``OF_FIELD``: the command line uses the field's own type or default."""


OF_FIELD: Any = _OfField()


@dataclass(frozen=True, slots=True)
class Cli:
    """Marks a field as an option of the command line. A field without this mark is an option in Python only."""

    panel: str | None = None
    metavar: str | None = None
    _: KW_ONLY
    name: str | None = None  # such as --template; by default made from the field's name
    short: str | None = None
    help: str | None = None  # by default the field's description
    type: Any = OF_FIELD
    default: Any = OF_FIELD  # if it differs on the command line
    is_common: bool = False  # whether it is in the first panel, which --help shows
    converts: Callable[[Any], Any] | None = None  # turns the value on the command line into the field's


@dataclass(frozen=True, slots=True)
class Recorded:
    """Marks a field as an option that run.json keeps, in the section ``part`` if given, as ``writes`` returns it."""

    part: str | None = None
    writes: Callable[[Any], Any] | None = None


QUIET = Cli(
    name="--quiet",
    short="-q",
    help="Show no progress, only the result and problems.",
    panel=DISPLAY,
    type=bool,
    default=False,
    converts=lambda is_quiet: "off" if is_quiet else "auto",
)


def recorded(options: Any) -> dict[str, Any]:
    """Return the options that run.json keeps, by name, in the order of their fields."""
    record: dict[str, Any] = {}
    for name, mark in _marked(type(options), Recorded):
        value = getattr(options, name)
        part = record if mark.part is None else record.setdefault(mark.part, {})
        part[name] = value if value is None or mark.writes is None else mark.writes(value)
    return record


def cli_options(model: Any) -> Mapping[str, tuple[Any, Cli]]:
    """Return the fields of a model that are options of the command line, each with its ``Cli`` mark."""
    return {name: (model.model_fields[name], mark) for name, mark in _marked(model, Cli)}


def _marked(model: Any, kind: type) -> list[tuple[str, Any]]:
    fields = model.model_fields.items()
    return [(name, mark) for name, field in fields for mark in field.metadata if isinstance(mark, kind)]


# --- options that exclude or need each other, in Python and on the command line ---------------------------------------


class Excludes(NamedTuple):
    """Two options of which only one may be given, and why: ``{one}`` and ``{other}`` are their names."""

    one: str
    other: str
    why: str


class Needs(NamedTuple):
    """An option that has no effect without one of some others."""

    option: str
    others: tuple[str, ...]
    why: str
    command: str | None = None
    waits: bool = False


_REPLACES_OR_RESUMES: Final = "{one} replaces the run in the folder, and {other} resumes it"

_OF_WHOLE: Final = "{one} runs a part, and {other} applies to the whole run; use it with merge"

EXCLUDING: Final = (
    Excludes("overwrite", "retry_errors", _REPLACES_OR_RESUMES),
    Excludes("overwrite", "force", _REPLACES_OR_RESUMES),
    Excludes("overwrite", "keep_answers", _REPLACES_OR_RESUMES),
    Excludes("limit", "sample", "{one} selects the first questions, and {other} random ones"),
    Excludes(
        "isolate", "engine", "{one} runs the agent in processes of this machine, and {other} in those of a cluster"
    ),
    Excludes("shard", "fail_under", _OF_WHOLE),
    Excludes("shard", "fail_over", _OF_WHOLE),
    Excludes("shard", "baseline", "{one} runs a part, and {other} applies to the whole run; compare the merged run"),
    Excludes("as_json", "dry_run", "{one} prints a run, and {other} does not run anything"),
)
NEEDING: Final = (
    Needs("seed", ("sample",), "a seed alone selects nothing"),
    Needs("ray_address", ("engine",), "only Ray has a cluster"),
    Needs("workers", ("engine",), "only Ray has workers"),
    Needs("baseline", ("fail_on_regression",), "a baseline is only for that gate", "run"),
    Needs("fail_on_regression", ("baseline",), "the gate compares the run with it", "run"),
    Needs("confirm", ("baseline",), "only questions that changed since are asked again", waits=True),
    *(
        Needs(name, ("trend",), "only a trend has it", "runs")
        for name in ("against", "templates", "tags", "html", "no_comparisons", "csv")
    ),
    Needs("mask", ("secrets",), "nothing else is masked", "doctor"),
    Needs("show_all", ("shows_plugins",), "it is about that list", "doctor"),
    Needs("max_drop", ("baseline",), "a drop is measured from another run", "run", waits=True),
    Needs(
        "confident",
        ("max_drop", "max_drop_per_template", "fail_on_regression"),
        "it limits which drops fail, and no drop has a limit",
    ),
)
# Options that name a file to write, each a different file.
WRITTEN: Final = ("html", "csv", "summary", "junit", "log_file")


def refuse_conflicts(
    given: Collection[str], known: Collection[str], *, command: str | None = None, called: Callable[[str], str] = str
) -> None:
    """Refuse options that exclude each other, or that have no effect without another.

    Example:
        >>> refuse_conflicts(["limit", "sample"], ["limit", "sample", "seed"])
        Traceback (most recent call last):
        ...
        graphrag_eval_lc.errors.OptionError: limit and sample exclude each other: limit selects the first questions, ...
    """
    for pair in EXCLUDING:
        if pair.one in given and pair.other in given:
            one, other = called(pair.one), called(pair.other)
            what = f"{one} and {other} exclude each other: {pair.why.format(one=one, other=other)}"
            raise OptionError(what, hint="Leave one of them out.")
    for need in NEEDING:
        is_here = need.command in (None, command) and any(other in known for other in need.others)
        if is_here and need.option in given and not any(other in given for other in need.others):
            name, others = called(need.option), " or ".join(called(other) for other in need.others)
            raise OptionError(f"{name} needs {others}: {need.why}", hint=f"Add it, or leave {name} out.")
