"""Steps with undecided comparisons and truncated outputs, compared by a custom matcher."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.matching import StepScore, StepView, register_matcher
from graphrag_eval_lc.matching.matchers import CutOutput, explained

UNDECIDED, CUT = "?", "<cut>"


def match_texts(reference: StepView, actual: StepView) -> StepScore:
    """Compare texts: ``?`` is undecided, a text that ends in ``<cut>`` is truncated, and 0.5 matches half."""
    expected, found = str(reference.get("output")), str(actual.get("output"))
    if found.endswith(CUT):
        raise CutOutput(f"the output ends after {len(found) - len(CUT)} characters")
    if UNDECIDED in expected + found:
        return explained(0.0, "the search reached its bound", is_undecided=True)
    if found == "0.5":
        return explained(0.5, "half of it")
    return explained(float(expected == found), "the same" if expected == found else f"{found} instead of {expected}")


def register_text_matcher(name: str = "look") -> None:
    """Register the matcher for steps of this name."""
    register_matcher(name=name)(match_texts)


def reference(output: str = "ok", name: str = "look") -> dict[str, Any]:
    return {"name": name, "args": {}, "output": output}


def look_call(output: str = "ok", name: str = "look", **more: Any) -> dict[str, Any]:
    """Return a call of the tool."""
    return {"name": name, "args": {}, "id": f"c-{output}", "status": "success", "output": output, **more}


def results_of(**outputs: str) -> list[dict[str, Any]]:
    """Return results for each output; ``ok`` is the correct one. Question ids begin with their template."""
    return results_of_tool("look", outputs)


def results_of_tool(tool: str, outputs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the same results for steps of another tool."""
    register_text_matcher(tool)
    questions: dict[str, list[Any]] = {}
    for identifier in outputs:
        question = {
            "id": identifier,
            "question_text": f"What of {identifier}?",
            "reference_steps": [[reference(name=tool)]],
        }
        questions.setdefault(identifier.partition("_")[0], []).append(question)
    dataset: Any = [{"template_id": name, "questions": of_template} for name, of_template in questions.items()]
    responses: Any = [
        {"question_id": identifier, "actual_answer": "It is.", "actual_steps": [look_call(output, tool)]}
        for identifier, output in outputs.items()
    ]
    return [dict(result) for result in run_evaluation(dataset, responses)]
