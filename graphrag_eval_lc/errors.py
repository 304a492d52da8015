"""The exceptions of the package: each says what is wrong, where, and how to mend it."""

from os import PathLike


class GraphRAGEvalError(Exception):
    """Base of all errors that this package raises on bad input.

    Args:
        what: One sentence on what is wrong.
        path: The file in which it stands.
        line: The line in that file, counted from 1.
        question_id: The question that it concerns.
        key: The key that it concerns, such as ``reference_steps[0][1].output``.
        mend: One sentence on how to put it right.

    Example:
        >>> print(DatasetError("no question text", path="qa.yaml", line=7, mend="Add question_text."))
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
        mend: str | None = None,
    ) -> None:
        self.what = what
        self.path = path
        self.line = line
        self.question_id = question_id
        self.key = key
        self.mend = mend
        super().__init__(what)

    def __str__(self) -> str:
        place = ", ".join(
            part
            for part in (
                str(self.path) if self.path is not None else "",
                f"line {self.line}" if self.line is not None else "",
                f"question {self.question_id}" if self.question_id is not None else "",
                f"key {self.key}" if self.key is not None else "",
            )
            if part
        )
        sentence = self.what if self.what.endswith((".", "?", "!")) else f"{self.what}."
        message = f"{place}: {sentence}" if place else sentence
        return f"{message} {self.mend}" if self.mend else message


class GraphRAGEvalWarning(UserWarning):
    """Something that is to be known before a score is trusted."""


class DatasetError(GraphRAGEvalError):
    """A reference dataset cannot be read or breaks the format."""


class ResponsesError(GraphRAGEvalError):
    """A file or list of responses cannot be read or breaks the format."""


class ConfigError(GraphRAGEvalError):
    """A configuration cannot be read or has a key or value that does not exist."""


class OptionError(GraphRAGEvalError):
    """An option of a run does not exist, or has a value that it cannot have."""


class AgentError(GraphRAGEvalError):
    """An agent cannot be loaded from its spec, or is nothing that can be asked."""


class RunFolderError(GraphRAGEvalError):
    """The folder of a run cannot be written or read."""


class ComparisonError(GraphRAGEvalError):
    """Runs cannot be compared."""


class MatcherError(GraphRAGEvalError):
    """A matcher is registered wrongly or gives back something that is no score."""


class PluginError(GraphRAGEvalError):
    """A plugin cannot be loaded, or a metric or an evaluator is registered wrongly."""


class CaptureError(GraphRAGEvalError):
    """A captured response does not exist or is not unique, or an option of the handler has a wrong value."""


class JudgeError(GraphRAGEvalError):
    """A judge's model gave no answer that can be used."""


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
            mend=f"Run: pip install 'graphrag-eval-lc[{extra}]'",
        )
