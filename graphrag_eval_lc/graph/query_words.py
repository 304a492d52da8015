"""Write terms, patterns and expressions of a query as people do: with prefixes, and operators between operands."""

import re
from collections.abc import Iterable, Iterator, Mapping

from graphrag_eval_lc.graph.query_expressions import Expression
from graphrag_eval_lc.graph.query_forms import Pattern, Where, kinds_of
from graphrag_eval_lc.graph.query_text import RDF_TYPE, UNDECLARED
from graphrag_eval_lc.texts import counted

_INFIX = ("=", "!=", "<", "<=", "+", "-", "*", "/", "&&", "||")
_NUMBER = re.compile(
    r'"([-+.\deE]+|true|false)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:integer|decimal|double|boolean)>'
)


class Words:
    """Terms, patterns and expressions as people write them."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = sorted(prefixes.items(), key=lambda each: -len(each[1]))

    def term(self, term: str) -> str:
        """Return a term, a path or a list of terms with prefixes."""
        if term == RDF_TYPE:
            return "a"
        if term.startswith(("?·", "?_")):
            return "[]"
        if term.startswith("{"):
            return f"{{{' '.join(self.term(each) for each in term[1:-1].split(' '))}}}"
        if term.startswith('"') and (number := _NUMBER.fullmatch(term)):
            return number[1]
        if term.startswith('"'):  # IRIs inside a string literal are a part of it
            text, mark, datatype = term.rpartition("^^<")
            return f"{text}^^{self.term(f'<{datatype}')}" if mark and not text.endswith("\\") else term
        for prefix, namespace in self._prefixes:
            term = _shortened(term, f"{prefix}:", namespace)
        return _shortened(term, "", UNDECLARED)

    def pattern(self, pattern: Pattern, where: str | None = None) -> str:
        """Return a triple pattern, and the group that it is in."""
        triple = " ".join(self.term(each) for each in (pattern.subject, pattern.predicate, pattern.object))
        group = " ".join(map(self._group, kinds_of(pattern.where))) if where is None else where
        return f"{group} {{ {triple} }}" if group else triple

    def groups(self, where: Where) -> str:
        """Return the groups around a part of a query, the innermost first, such as "OPTIONAL inside UNION"."""
        return " inside ".join(map(self._group, reversed(kinds_of(where))))

    def condition(self, condition: Expression) -> str:
        """Return a filter, or what binds variables."""
        text = self.expression(condition)
        if condition[0] == "bind":
            return f"BIND({text})"
        return text if condition[0] == "values" else f"the filter {text}"

    def _group(self, where: str) -> str:
        kind, _, term = where.partition(" ")
        if kind == "subquery":
            return "the subquery"
        return f"{kind.upper()} {self.term(term)}" if kind in ("graph", "service") else where.upper()

    def _operand(self, value: Expression, of: str) -> str:
        """Return an operand, in parentheses if it is an operation inside another one."""
        text = self.expression(value)
        is_inner = of in _INFIX and isinstance(value, tuple) and value[0] in _INFIX and len(value) > 2
        return f"({text})" if is_inner else text

    def chains(self, patterns: Iterable[Pattern]) -> Iterator[str]:
        """Yield patterns as texts; patterns that are joined only by a blank node become one path."""

        def follows(first: Pattern, second: Pattern) -> bool:
            is_inside_path = first.object.startswith("?·")
            return is_inside_path and first.object == second.subject and first.where == second.where

        left = list(patterns)
        while left:
            first = left.pop(0)
            while (following := next((each for each in left if follows(first, each)), None)) is not None:
                left.remove(following)
                path = f"{first.predicate}/{following.predicate}"
                first = Pattern(first.subject, path, following.object, first.where)
            yield self.pattern(first)

    def expression(self, value: Expression) -> str:
        """Return an expression with operators between their operands."""
        if isinstance(value, str):
            return self.term(value)
        name, *operands = value
        texts = [self._operand(each, str(name)) for each in operands]
        if name == "bind":
            return f"{texts[1]} AS {texts[0]}"
        if name == "values":
            return f"VALUES ({' '.join(map(self.expression, operands[0]))}) of {counted(len(operands) - 1, 'row')}"
        if name in ("in", "not in"):
            return f"{texts[0]} {str(name).upper()} ({', '.join(texts[1:])})"
        if name in _INFIX and len(texts) > 1:
            return f" {name} ".join(texts)
        if name == "!":
            return f"!({texts[0]})"
        head = self.expression(name)
        return f"{head}({' '.join(texts) if texts[:1] == ['DISTINCT'] else ', '.join(texts)})"


def _shortened(term: str, prefix: str, namespace: str) -> str:
    """Write each ``<namespace…>`` of a term or path with its prefix, if the rest is a local name."""
    if f"<{namespace}" not in term:
        return term
    return re.sub(f"<{re.escape(namespace)}([^<>/#]*)>", lambda found: prefix + found[1], term)
