"""Options that exclude each other, and options that mean nothing without another: the one table of them.

Python's keywords and the command line are held against it, each under its own names.
"""

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from graphrag_eval_lc.errors import OptionError


class Excludes(NamedTuple):
    """Two options of which only one may be given, and why: ``{one}`` and ``{other}`` stand for their names."""

    one: str
    other: str
    why: str


class Needs(NamedTuple):
    """An option that means nothing without one of some others.

    Attributes:
        option: Its name, as Python's keyword.
        others: The names of the others, of which one is enough.
        why: What it does, as the end of a sentence.
        command: The command where that is so; None for all that have them.
        waits: Whether it may be in the project file without the others, for runs that have them.
    """

    option: str
    others: tuple[str, ...]
    why: str
    command: str | None = None
    waits: bool = False


_ANEW: Final = "{one} replaces the run in the folder, and {other} goes on with it"

_OF_WHOLE: Final = "{one} asks a part of the run, and {other} bounds the whole; merge takes it"

EXCLUDING: Final = (
    Excludes("overwrite", "retry_errors", _ANEW),
    Excludes("overwrite", "force", _ANEW),
    Excludes("overwrite", "keep_answers", _ANEW),
    Excludes("limit", "sample", "{one} takes the first questions, and {other} some at random"),
    Excludes("isolate", "engine", "{one} asks in processes of this machine, and {other} in those of a cluster"),
    Excludes("shard", "fail_under", _OF_WHOLE),
    Excludes("shard", "fail_over", _OF_WHOLE),
    Excludes("shard", "baseline", "{one} asks a part of the run, and {other} is for the whole; compare the merged run"),
    Excludes("as_json", "dry_run", "{one} prints a run, and {other} makes none"),
)
NEEDING: Final = (
    Needs("seed", ("sample",), "a seed selects nothing by itself"),
    Needs("ray_address", ("engine",), "only Ray has a cluster"),
    Needs("workers", ("engine",), "only Ray has workers"),
    Needs("baseline", ("fail_on_regression",), "a baseline is for that gate alone", "run"),
    Needs("fail_on_regression", ("baseline",), "the gate compares the run with it", "run"),
    Needs("confirm", ("baseline",), "only what changed since is asked again", waits=True),
    Needs("max_drop", ("baseline",), "a drop is one from another run", "run", waits=True),
    Needs(
        "confident",
        ("max_drop", "max_drop_per_template", "fail_on_regression"),
        "only sure drops are to fail, and no drop is limited",
    ),
)
# Options that name a file to be written, each a file of its own.
WRITTEN: Final = ("html", "csv", "summary", "junit", "log_file")


def refuse_conflicts(
    given: Collection[str],
    known: Collection[str],
    *,
    command: str | None = None,
    called: Callable[[str], str] = str,
) -> None:
    """Refuse options that exclude each other, or that mean nothing without another.

    Args:
        given: The names of the options that are given, as Python's keywords.
        known: The names of all options that there are.
        command: The command; None in Python.
        called: Gives what an option is called.

    Raises:
        OptionError: There are such options; with what to leave out or to add.

    Example:
        >>> refuse_conflicts(["limit", "sample"], ["limit", "sample", "seed"])
        Traceback (most recent call last):
        ...
        graphrag_eval_lc.errors.OptionError: limit and sample exclude each other: limit takes the first questions, ...
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
