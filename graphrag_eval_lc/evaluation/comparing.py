"""Where responses are compared with their references: in this process, or by workers that a caller gives."""

from collections.abc import AsyncGenerator, Iterable
from typing import NamedTuple, Protocol

from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.records import Response, Result


class Compared(NamedTuple):
    """A response that was compared with its reference, and not yet judged.

    Attributes:
        sample: The sample.
        response: Its response, priced; None where there is none.
        result: What ``evaluate_question`` gives for it.
    """

    sample: Sample
    response: Response | None
    result: Result


class Comparer(Protocol):
    """Compares many responses elsewhere than in the process of the pipeline."""

    def acompared(
        self, samples: Iterable[tuple[Sample, Response | None]], *, number: int, has_repeats: bool
    ) -> AsyncGenerator[Compared]:
        """Compare responses, and yield them in the order in which they are given.

        Args:
            samples: The samples with their responses, of which only some are taken ahead.
            number: How many there are.
            has_repeats: Whether results name their repeat.

        Raises:
            Exception: What ``evaluate_question`` raises for a response, once all before it are yielded.
        """
