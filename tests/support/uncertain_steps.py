"""Steps whose comparison is undecided and outputs that are cut, told by a matcher of a test's own."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.matching import StepScore, StepView, register_matcher
from graphrag_eval_lc.matching.matchers import CutOutput, explained

UNDECIDED, CUT = "?", "<cut>"


def match_with_doubts(reference: StepView, actual: StepView) -> StepScore:
    """Compare texts: ``?`` in a text leaves it undecided, one that ends in ``<cut>`` is cut, and 0.5 fits half."""
    expected, found = str(reference.get("output")), str(actual.get("output"))
    if found.endswith(CUT):
        raise CutOutput(f"the output ends after {len(found) - len(CUT)} characters")
    if UNDECIDED in expected + found:
        return explained(0.0, "the search reached its bound", is_undecided=True)
    if found == "0.5":
        return explained(0.5, "half of it")
    return explained(float(expected == found), "the same" if expected == found else f"{found} instead of {expected}")


def register_doubts(name: str = "look") -> None:
    """Have steps of this name compared with doubts."""
    register_matcher(name=name)(match_with_doubts)


def reference(output: str = "ok", name: str = "look") -> dict[str, Any]:
    """Return a reference step."""
    return {"name": name, "args": {}, "output": output}


def looked(output: str = "ok", name: str = "look", **more: Any) -> dict[str, Any]:
    """Return a call of the tool."""
    return {"name": name, "args": {}, "id": f"c-{output}", "status": "success", "output": output, **more}


def results_of(**outputs: str) -> list[dict[str, Any]]:
    """Return the results of a question for each output, of which ``ok`` is right; its id begins with its template."""
    return results_of_tool("look", outputs)


def results_of_tool(tool: str, outputs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the same results of steps of another name."""
    register_doubts(tool)
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
        {"question_id": identifier, "actual_answer": "It is.", "actual_steps": [looked(output, tool)]}
        for identifier, output in outputs.items()
    ]
    return [dict(result) for result in run_evaluation(dataset, responses)]
