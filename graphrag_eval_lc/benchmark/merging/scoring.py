"""The results of a merged run: those of its parts are taken over, and what lacks one is scored where nobody judges."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from graphrag_eval_lc.benchmark.merging.answers import Answers
from graphrag_eval_lc.benchmark.merging.parts import Part
from graphrag_eval_lc.benchmark.record_values import mapping_of
from graphrag_eval_lc.benchmark.recorded_scoring import (
    config_again,
    missing_functions,
    recorded_config,
    register_recorded,
)
from graphrag_eval_lc.benchmark.run_identity import LIMITS
from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.dataset.loading import response_key
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.evaluation.pipeline import Pipeline
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.judges.custom_functions import has_registered_functions
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Response, Result, Template
from graphrag_eval_lc.registry.plugins import registered_only_here
from graphrag_eval_lc.run_folder import RunFolder, iter_results


class MergedScoring:
    """Scores a merged run as its parts were scored.

    Args:
        parts: The parts.
        templates: The dataset.
        samples: All samples of the run.
        answers: The responses.
        repeats: How often each question is asked.

    Attributes:
        config: The configuration, as run.json has it.
        unscored: How many responses are left that cannot be scored here.
        warnings: What the user should know of the results.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        templates: Sequence[Template],
        samples: Sequence[Sample],
        answers: Answers,
        repeats: int,
    ) -> None:
        self._parts = parts
        self._templates = templates
        self._samples = samples
        self._answers = answers
        self._repeats = repeats
        self.config = recorded_config(parts[0].record)
        self.unscored = 0
        self.warnings: list[str] = []

    def aggregates(self, folder: RunFolder) -> dict[str, Any] | None:
        """Write the results, and return the aggregates; None where ``unscored`` responses have to be scored elsewhere.

        Raises:
            RunFolderError: The folder cannot be written, or the results of a part cannot be read.
        """
        config = self._config_to_score()
        with registered_only_here():
            for part in self._parts:
                register_recorded(part.record)
            with folder.results() as results:
                pipeline = self._pipeline(config or self.config, results)
                lacking = self._keep(pipeline)
                if lacking and config is None:
                    self.unscored = len(lacking)
                    results.discard()
                    return None
                for sample in lacking:
                    pipeline.add(sample, cast("Response | None", self._answers.read(sample.key)))
                aggregates = pipeline.finish()
            has_budget = mapping_of(self._parts[0].record.get(LIMITS)).get("max_cost") is not None
            self.warnings += pipeline.warnings(wants_costs=has_budget)
            return aggregates

    def nothing(self) -> dict[str, Any]:
        """Return the aggregates of a run without results."""
        return self._pipeline(self.config, None).finish()

    def _pipeline(self, config: EvaluationConfig, results: Any) -> Pipeline:
        pricing = Pricing(config.prices)
        return Pipeline(config, self._templates, repeats=self._repeats, pricing=pricing, file=results)

    def _keep(self, pipeline: Pipeline) -> list[Sample]:
        """Take over the results of the responses that count; return the samples that have none, in their order."""
        lacking = {sample.key: sample for sample in self._samples}
        for number, part in enumerate(self._parts):
            for result in iter_results(part.results) if part.is_scored else ():
                key = response_key(result)
                if key in lacking and self._answers.journal_of(key) == number:
                    pipeline.keep(lacking.pop(key), cast("Result", result))
        return [sample for sample in lacking.values() if sample.key in self._answers]

    def _config_to_score(self) -> EvaluationConfig | None:
        """Return the configuration by which responses are scored here as in a part; None where they cannot be."""
        if self.config.llm is not None or has_registered_functions() or any(map(_is_judged, self._parts)):
            return None
        if any(missing_functions(part.record) for part in self._parts):
            return None
        try:
            return load_config(config_again(self._parts[0].record))
        except ConfigError:  # it names what a plugin of theirs declares
            return None


def _is_judged(part: Part) -> bool:
    """Return whether a model or a user's function scored a part."""
    record: Mapping[str, Any] = part.record
    return bool(record.get("judges") or record.get("evaluators"))
