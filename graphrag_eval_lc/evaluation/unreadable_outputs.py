"""Finds tools whose outputs cannot be compared with rows, because they are texts for the model and not data."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.texts import counted, shortened

_FEWEST = 3
"""Fewer unreadable outputs are no pattern: they are shown with their questions."""


class UnreadableOutputs:
    """Counts the outputs of each tool that are texts where a reference step has rows.

    Example:
        >>> outputs = UnreadableOutputs()
        >>> step = {"name": "ask", "status": "success", "comparison_error": "a text without results"}
        >>> outputs.add({"actual_steps": [step] * 3})
        >>> print(outputs.warnings()[0].split("; ")[0])
        3 of 3 outputs of ask cannot be compared (the last one is a text without results)
    """

    def __init__(self) -> None:
        self._called: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()
        self._last: dict[str, str] = {}
        self._has_artifacts: set[str] = set()

    def add(self, result: Mapping[str, Any]) -> None:
        """Add a result: its ``actual_steps`` with what could not be compared in ``comparison_error``."""
        for step in result.get("actual_steps") or ():
            if not isinstance(step, Mapping) or step.get("status") != "success":
                continue
            name = str(step.get("name"))
            self._called[name] += 1
            problem = str(step.get("comparison_error", ""))
            if problem.startswith("a text without results"):  # others are errors, or say what to do
                self._unreadable[name] += 1
                self._last[name] = problem
                if step.get("artifact") is not None:
                    self._has_artifacts.add(name)

    def warnings(self) -> list[str]:
        """Return a warning with a fix for each tool with several unreadable outputs, if they are at least half."""
        return [
            f"{unreadable:,} of {counted(self._called[name], 'output')} of {name} cannot be compared (the last one is "
            f"{shortened(self._last[name], 100)}); {self._fix(name)}"
            for name, unreadable in self._unreadable.most_common()
            if unreadable >= _FEWEST and 2 * unreadable >= self._called[name]
        ]

    def _fix(self, name: str) -> str:
        setting = f"`steps: {{outputs: {{{name}: {{artifact: true}}}}}}` in the config"
        if name in self._has_artifacts:
            return f"the tool returns artifacts: perhaps {setting}"
        return f'return JSON, or also the rows as an artifact (response_format="content_and_artifact") and {setting}'
