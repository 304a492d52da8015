"""The exceptions of the package; each says what is wrong, where, and how to fix it."""

import errno
import os
import sys
import sysconfig
import traceback
import warnings
from os import PathLike
from pathlib import Path

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.texts import visible

__all__ = [
    "AgentError",
    "CaptureError",
    "ComparisonError",
    "ConfigError",
    "DatasetError",
    "GraphRAGEvalError",
    "GraphRAGEvalWarning",
    "JudgeError",
    "MatcherError",
    "MissingExtraError",
    "NothingToCompareError",
    "OptionError",
    "PluginError",
    "PublishError",
    "ResponsesError",
    "RunFolderError",
]

__dir__ = only_public(globals())

# The project's address, for messages. It is empty, as there is none yet.
PROJECT_ADDRESS = ""

# If this environment variable is set, notebooks show full tracebacks of this package's errors.
TRACEBACK_SWITCH = "GRAPHRAG_EVAL_LC_TRACEBACK"


class GraphRAGEvalError(Exception):
    """Base class of all errors that this package raises on bad input.

    In its text, control characters are made visible, so that no terminal or notebook obeys them. The attributes are
    unchanged.

    Args:
        what: One sentence on what is wrong.
        path: The file that it concerns.
        line: The line of that file, from 1.
        question_id: The question that it concerns.
        key: The key that it concerns, such as ``reference_steps[0][1].output``.
        hint: One sentence on how to fix it.

    Example:
        >>> print(DatasetError("no question text", path="qa.yaml", line=7, hint="Add question_text."))
        qa.yaml, line 7: no question text. Add question_text.
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        question_id: str | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.path = path
        self.line = line
        self.question_id = question_id
        self.key = key
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        parts = (("", self.path), ("line ", self.line), ("question ", self.question_id), ("key ", self.key))
        place = ", ".join(filter(None, (f"{word}{value}" for word, value in parts if value is not None)))
        place = visible(place, keeps_lines=False)
        sentence = self.what if self.what.endswith((".", "?", "!")) else f"{self.what}."
        message = f"{place}: {sentence}" if place else sentence
        return visible(f"{message} {self.hint}" if self.hint else message)

    def _render_traceback_(self) -> list[str]:
        """Return the error as one line for IPython and notebooks; ``%tb`` and the switch show the traceback."""
        # While it is being handled, it was just raised. Later, the user asks for the traceback.
        if sys.exc_info()[1] is self and not os.environ.get(TRACEBACK_SWITCH):
            return [f"{type(self).__name__}: {self} (%tb shows the traceback.)"]
        shell = sys.modules["IPython"].get_ipython()
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, self.__traceback__)
        return lines


class GraphRAGEvalWarning(UserWarning):
    """Something to know before you trust a score."""


def warn(text: str, *, stacklevel: int = 1) -> None:
    """Issue a warning of this package, with control characters made visible.

    Args:
        text: The message.
        stacklevel: Which caller's line it names, as for ``warnings.warn``; 1 is the direct caller.
    """
    warnings.warn(visible(text), GraphRAGEvalWarning, stacklevel=stacklevel + 1)


class DatasetError(GraphRAGEvalError):
    """A reference dataset cannot be read or breaks the format."""


class ResponsesError(GraphRAGEvalError):
    """A file or list of responses cannot be read or breaks the format."""


class ConfigError(GraphRAGEvalError):
    """A configuration cannot be read or has a key or value that does not exist."""


class OptionError(GraphRAGEvalError):
    """An option of a run does not exist or has a wrong value."""


class AgentError(GraphRAGEvalError):
    """An agent cannot be loaded from its spec, or cannot be asked."""


class RunFolderError(GraphRAGEvalError):
    """The folder of a run cannot be written or read."""


class ComparisonError(GraphRAGEvalError):
    """Runs cannot be compared."""


class NothingToCompareError(ComparisonError):
    """Runs have nothing in common that could be compared, such as no question or no metric."""


class MatcherError(GraphRAGEvalError):
    """A matcher is registered wrongly or returns no score."""


class PluginError(GraphRAGEvalError):
    """A plugin cannot be loaded, or a metric or an evaluator is registered wrongly."""


class PublishError(GraphRAGEvalError):
    """Scores cannot be published: the tool cannot be reached, or refuses the key."""


class CaptureError(GraphRAGEvalError):
    """A captured response does not exist or is not unique, or an option of the handler has a wrong value."""


class JudgeError(GraphRAGEvalError):
    """A judge's model returned no usable answer."""


class MissingExtraError(GraphRAGEvalError):
    """A feature needs a package that an extra of this project installs.

    Args:
        feature: What cannot be done, as the beginning of a sentence.
        extra: The extra's name, such as ``demo``.
        missing: The name of the package that is missing.
    """

    def __init__(self, feature: str, extra: str, missing: str) -> None:
        super().__init__(
            f"{feature} needs the package {missing}, which is not installed",
            hint=f"Run: pip install 'graphrag-eval-lc[{extra}]'",
        )


_NO_ROOM_ON_DISK = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
_ALL_OPEN = {errno.EMFILE, errno.ENFILE}
_ELSEWHERE = {
    errno.EROFS: "This disk is read-only: choose a folder on another one.",
    errno.ENAMETOOLONG: "Use a shorter path.",
    errno.ELOOP: "Links lead in a circle here: fix them, or choose another folder.",
}


def cannot_write(path: str | PathLike[str], problem: OSError, *, is_output: bool = False) -> RunFolderError:
    """Return the error for a file that cannot be written.

    Args:
        path: The file.
        problem: What the system said.
        is_output: Whether it is a file that the user named, not one that belongs to a run.
    """
    parent = Path(path).parent
    if is_output and problem.errno == errno.ENOENT and not parent.is_dir():
        hint = f"The folder {parent} does not exist: create it first, or choose another one."
    else:
        hint = _hint_for(path, problem)
    return RunFolderError(f"cannot be written ({_reason(problem)})", path=path, hint=hint)


def cannot_make(path: str | PathLike[str], problem: OSError) -> RunFolderError:
    """Return the error for a folder that cannot be created or used, before the agent is called."""
    hint = _never_there(path) if problem.errno == errno.ENOENT else _hint_for(path, problem, is_beginning=True)
    return RunFolderError(f"cannot be written ({_reason(problem)})", path=path, hint=hint)


def cannot_read(path: str | PathLike[str], problem: OSError) -> RunFolderError:
    """Return the error for a file that cannot be read."""
    return RunFolderError(f"cannot be read ({_reason(problem)})", path=path, hint="Check the path and the permissions.")


def no_path(path: str | PathLike[str]) -> RunFolderError:
    """Return the error for a path with a NUL character, which no system accepts."""
    hint = "Use a path without the character \\x00."
    return RunFolderError("the path has a NUL character", path=ascii(os.fspath(path)), hint=hint)


def where_it_failed(problem: BaseException) -> str:
    """Return the hint for the user's code that failed: its file and line, and how to see the traceback.

    Args:
        problem: What the code raised.
    """
    if isinstance(problem, SyntaxError) and problem.filename:
        places = [(problem.filename, problem.lineno or 1)]
    else:
        frames = traceback.walk_tb(problem.__traceback__)
        places = [(frame.f_code.co_filename, line) for frame, line in frames if _is_of_user(frame.f_code.co_filename)]
    if not places:
        return "Run it with --debug for the traceback."
    path, line = places[-1]
    here = os.path.relpath(path)
    shown = path if here.startswith(os.pardir) else here
    return f"Look at {shown}, line {line}, or run it with --debug for the traceback."


def _is_of_user(path: str) -> bool:
    """Return whether a file is the user's code, not that of a library, of Python or of this package."""
    libraries = (*sysconfig.get_paths().values(), str(Path(__file__).parent))
    return not path.startswith("<") and not any(path.startswith(f"{folder}{os.sep}") for folder in libraries)


def removed(path: str | PathLike[str]) -> RunFolderError:
    """Return the error for a file that was removed or replaced while the run had it open."""
    return RunFolderError(
        "the file or its folder was removed while the run was writing",
        path=path,
        hint="Run again, and leave the folder alone until the run ends.",
    )


def _reason(problem: OSError) -> str:
    return problem.strerror or str(problem)


def _hint_for(path: str | PathLike[str], problem: OSError, *, is_beginning: bool = False) -> str:
    number = problem.errno
    kept = "." if is_beginning else ": what is written so far is kept."
    if number in _NO_ROOM_ON_DISK:
        return f"Free space on this disk (or raise the limit), then run again{kept}"
    if number in _NOT_ALLOWED:
        return "Choose a folder that you may write to."
    if number in _IN_THE_WAY:
        return _in_the_way(path)
    if number in _ALL_OPEN:
        return f"Too many files are open: close some or raise the limit (ulimit -n), then run again{kept}"
    if number == errno.ENOENT:
        if Path(path).parent.is_dir():
            return _never_there(path)
        return "The folder was removed while the run was writing: run again, and leave it alone until the run ends."
    return _ELSEWHERE.get(number or 0, f"Check the disk, then run again{kept}")


def _in_the_way(path: str | PathLike[str]) -> str:
    if Path(path).is_dir():
        return "A folder of this name exists, and a file is needed: move it away, or choose another folder."
    return "A file of this name exists, and a folder is needed: move it away, or choose another folder."


def _never_there(path: str | PathLike[str]) -> str:
    """Return a message for a folder in which nothing can be created, such as /proc or a removed working directory."""
    there = next((str(each) for each in Path(path).parents if each.is_dir()), ".")
    return f"Nothing can be created in {there}: choose a folder on a disk."
