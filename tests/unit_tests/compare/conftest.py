from collections.abc import Callable, Sequence
from typing import Any

import pytest

Results = list[dict[str, Any]]


@pytest.fixture
def scored() -> Callable[..., Results]:
    """Return a function that makes results from scores: one template per score, None for a failed question."""

    def results(*scores: float | None, templates: Sequence[str] = (), **values: Any) -> Results:
        return [
            {
                "template_id": templates[index] if templates else f"t{index}",
                "question_id": f"q{index}",
                "question_text": f"What about {index}?",
                **({"status": "error", "error": "away"} if score is None else {"status": "success"}),
                "steps_score": score or 0.0,
                **values,
            }
            for index, score in enumerate(scores)
        ]

    return results
