"""STUB on the old code until K's arrives."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphrag_eval_lc.matching.rows.coded_rows import Rules as OldRules
from graphrag_eval_lc.matching.rows.values import ValueRules
from graphrag_eval_lc.matching.rows.xsd_numbers import Tolerances

UNBOUND_KEY = 0


@dataclass
class KeyColumn:
    keys: list
    blanks: dict = field(default_factory=dict)


class Rules(NamedTuple):
    strict: bool = False
    tolerances: Any = Tolerances()
    values: Any = ValueRules()
    node_keys: tuple = ()
    list_order: bool = True


class Keys:
    def __init__(self, reference, actual, required, rules):
        from graphrag_eval_lc.matching.rows.graded_columns import GradedColumns
        from graphrag_eval_lc.matching.rows.graph_columns import comparable_results
        from graphrag_eval_lc.matching.rows.graph_parts import GraphRules

        old = OldRules("bag", rules.strict, rules.tolerances, rules.values)
        a, b = comparable_results(reference, actual, required, GraphRules(rules.node_keys, rules.list_order), old)
        coded = GradedColumns(a, b, required, old)
        self._mine = dict(zip(coded.names, coded.columns))
        self._others = dict(zip(coded.actual_names, coded.actual_columns))
        self._a, self._b = a, b

    def _col(self, keys, terms, labels):
        blanks = {}
        for at in range(len(terms.texts)):
            if terms.kind(at) == "bnode":
                blanks[at] = (labels.setdefault(terms.texts[at], len(labels)),)
        return KeyColumn(list(keys), blanks)

    def reference(self, name):
        self.la = getattr(self, "la", {})
        return self._col(self._mine[name], self._a.columns[name], self.la)

    def actual(self, name):
        self.lb = getattr(self, "lb", {})
        return self._col(self._others[name], self._b.columns[name], self.lb)

    def note(self, name, row, actual_name, actual_row):
        return None


def _of(cls, *, strict, tolerance, values, node_keys, list_order):
    return cls(strict, Tolerances.of(tolerance, strict=strict), ValueRules.of(values), tuple(node_keys), list_order)


Rules.of = classmethod(_of)
