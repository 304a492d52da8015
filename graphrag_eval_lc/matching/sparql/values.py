"""Which terms have a value beside their text, and what it is: times, durations, geometries, texts and IRIs."""

from collections.abc import Mapping
from typing import NamedTuple

from graphrag_eval_lc.config import ValuesConfig


class ValueRules(NamedTuple):
    """Which terms are compared by what they mean; see ``ValuesConfig``."""

    times: bool = True
    durations: bool = True
    wkt: bool = True
    nfc: bool = True
    iri_case: bool = True

    @classmethod
    def of(cls, values: "Mapping[str, bool] | ValuesConfig | None") -> "ValueRules":
        """Return the rules of a config, or those switched on and off by name.

        Raises:
            ValueError: A name is unknown, or what it is set to is neither true nor false.

        Example:
            >>> ValueRules.of({"wkt": False}).wkt
            False
        """
        if values is None:
            return cls()
        given = values.model_dump() if isinstance(values, ValuesConfig) else dict(values)
        unknown = [name for name in given if name not in cls._fields]
        if unknown:
            raise ValueError(f"values has no {unknown[0]!r:.40}: it has {', '.join(cls._fields)}")
        wrong = [name for name, value in given.items() if not isinstance(value, bool)]
        if wrong:
            raise ValueError(f"values.{wrong[0]} is neither true nor false")
        return cls(**given)
