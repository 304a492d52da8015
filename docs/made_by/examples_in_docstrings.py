"""An extension of Griffe: the section ``Example`` of a docstring is shown as code, as ``Examples`` is."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class ExamplesInDocstrings(griffe.Extension):
    """Renames the section in every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename it in the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"\1Examples:", obj.docstring.value)
