"""What a run gave: its aggregates, and its responses and results, read from the disk when they are asked for."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.records import Response, Result
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RESULTS_FILE, iter_responses, iter_results


class BenchmarkRun:
    """What a run gave.

    A run with a folder holds nothing but its aggregates in memory; ``iter_results`` reads one result at a time.

    Args:
        aggregates: The sums over the results.
        output_dir: The run's folder; None where none was asked for.
        responses: The responses of a run without a folder.
        results: Its results.
        stopped: ``reason``, ``message`` and ``left_out`` of a run that ended before its time.
        warnings: What is to be known of the run.
        judges: The judges of the run.

    Attributes:
        aggregates: The sums over the results.
        output_dir: The run's folder, or None.
        stopped: Why the run ended before its time (``reason``: interrupted, max_failures, max_tokens, max_time or
            max_cost; ``message``) and how many samples it left out (``left_out``); None where it asked all.
        warnings: What is to be known of the run, such as lines of the journal that were set aside.
        judges: The judges' models, metrics and prompts; None where nothing was judged.
    """

    def __init__(
        self,
        aggregates: dict[str, Any],
        *,
        output_dir: Path | None = None,
        responses: list[Response] | None = None,
        results: list[Result] | None = None,
        stopped: Mapping[str, Any] | None = None,
        warnings: Sequence[str] = (),
        judges: Mapping[str, Any] | None = None,
    ) -> None:
        self.aggregates = aggregates
        self.output_dir = output_dir
        self.stopped = stopped
        self.warnings = warnings
        self.judges = judges
        self._responses = responses
        self._results = results

    def __repr__(self) -> str:
        micro = self.aggregates["micro"]
        parts = [
            f"{micro['number_of_success_samples']} answered",
            f"{micro['number_of_error_samples']} failed",
            f"steps_score {micro['steps_score']['mean']:.3f}" if "steps_score" in micro else "",
            f"stopped: {self.stopped['reason']}" if self.stopped else "",
            str(self.output_dir) if self.output_dir else "",
        ]
        return f"<BenchmarkRun {', '.join(part for part in parts if part)}>"

    @cached_property
    def results(self) -> list[Result]:
        """The scored samples, by question in the dataset's order, then by repeat."""
        return list(self.iter_results())

    @cached_property
    def responses(self) -> list[Response]:
        """The responses that were scored, in the order of the results."""
        if self._responses is not None:
            return self._responses
        if self.output_dir is None:
            return []
        known = {_key(response): response for response in iter_responses(self.output_dir / RESPONSES_FILE)}
        keys = map(_key, self.iter_results())
        return [cast("Response", known[key]) for key in keys if key in known]

    def iter_results(self) -> Iterator[Result]:
        """Give the results one at a time.

        Raises:
            RunFolderError: The file of results cannot be read.
        """
        if self._results is not None:
            yield from self._results
        elif self.output_dir is not None:
            yield from cast("Iterator[Result]", iter_results(self.output_dir / RESULTS_FILE))

    def result(self, question_id: str, repeat: int = 1) -> Result:
        """Give the result of one question.

        Raises:
            RunFolderError: The run has none.
        """
        return next((each for each in self.results if _key(each) == (question_id, repeat)), None) or self._missing(
            "result", question_id, repeat
        )

    def response(self, question_id: str, repeat: int = 1) -> Response:
        """Give the response to one question.

        Raises:
            RunFolderError: The run has none.
        """
        return next((each for each in self.responses if _key(each) == (question_id, repeat)), None) or self._missing(
            "response", question_id, repeat
        )

    def _missing(self, what: str, question_id: str, repeat: int) -> Any:
        raise RunFolderError(
            f"the run has no {what} for repeat {repeat} of this question",
            path=self.output_dir,
            question_id=question_id,
            mend="The ids are those of the results: [result['question_id'] for result in run.results].",
        )


def _key(record: Mapping[str, Any]) -> tuple[str, int]:
    return str(record["question_id"]), record.get("repeat", 1)
