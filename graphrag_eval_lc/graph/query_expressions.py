"""Conditions and values of a query as nested tuples: rdflib's algebra goes in, one normal form comes out."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from graphrag_eval_lc.graph.query_text import STANDARD_PREFIXES

Expression: TypeAlias = str | tuple["Expression", ...]
"""A term ("?x", "<iri>", '"text"'), or an operator and its operands."""

_XSD_STRING = f"^^<{STANDARD_PREFIXES['xsd']}string>"
_COMMUTATIVE = ("=", "!=", "+", "*", "&&", "||", "in", "not in", "values")


def read_expression(raw: Any, aggregates: Mapping[str, Expression]) -> Expression:
    """Return an expression of rdflib's algebra as tuples.

    Args:
        raw: A term, a node of the algebra, or a list of these.
        aggregates: What rdflib's names of aggregates mean.
    """
    if isinstance(raw, Identifier):
        text = term_text(raw)
        return aggregates.get(text, text)
    if isinstance(raw, (list, tuple)):
        return tuple(read_expression(each, aggregates) for each in raw)
    if not isinstance(raw, CompValue):
        return str(raw)
    match raw.name:
        case "ConditionalAndExpression" | "ConditionalOrExpression":
            parts = [read_expression(each, aggregates) for each in (raw.expr, *raw.other)]
            if raw.name == "ConditionalAndExpression":
                return ("&&", *parts)
            return _one_of(parts) or ("||", *parts)
        case "RelationalExpression":
            return _relation(raw, aggregates)
        case "AdditiveExpression" | "MultiplicativeExpression":
            value = read_expression(raw.expr, aggregates)
            for operator, other in zip(raw.op or (), raw.other or (), strict=False):
                value = (str(operator), value, read_expression(other, aggregates))
            return value
        case "UnaryNot":
            return _negated(read_expression(raw.expr, aggregates))
        case "UnaryMinus":
            return ("-", read_expression(raw.expr, aggregates))
        case "Function":
            return (term_text(raw.iri), *(read_expression(each, aggregates) for each in raw.expr or ()))
        case "Builtin_EXISTS" | "Builtin_NOTEXISTS":
            return (raw.name.removeprefix("Builtin_"),)
    values = [raw[key] for key in raw if not str(key).startswith("_") and raw[key] not in (None, [])]
    operands = [each for value in values for each in (value if isinstance(value, list) else [value])]
    name = raw.name.removeprefix("Builtin_").removeprefix("Aggregate_")
    return (name, *(read_expression(each, aggregates) for each in operands))


def _relation(raw: Any, aggregates: Mapping[str, Expression]) -> Expression:
    left, operator = read_expression(raw.expr, aggregates), str(raw.op)
    if operator in ("IN", "NOT IN"):
        values = raw.other if isinstance(raw.other, list) else ()  # rdflib parses IN () as rdf:nil
        others = sorted((read_expression(each, aggregates) for each in values), key=str)
        if operator == "IN" or not others:
            return (operator.lower(), left, *others)
        return _negated(("in", left, *others))
    right = read_expression(raw.other, aggregates)
    if operator in (">", ">="):
        return (operator.replace(">", "<"), right, left)
    return (operator, left, right)


def _one_of(parts: list[Expression]) -> Expression | None:
    """Return alternatives as IN if they all list constants for the same variable; else None."""
    lists = [listed_values(each) for each in parts]
    names = {each[0] for each in lists if each is not None}
    if None in lists or len(names) != 1:
        return None
    return ("in", names.pop(), *sorted({value for each in lists if each is not None for value in each[1]}))


def _negated(value: Expression) -> Expression:
    """Return the negation of a condition, without ``!`` if it is a comparison."""
    match value:
        case ("=" | "!=" as operator, left, right):
            return ("!=" if operator == "=" else "=", left, right)
        case ("<" | "<=" as operator, left, right):
            return ("<=" if operator == "<" else "<", right, left)
        case ("in", left, other):
            return ("!=", left, other)
        case ("in", left, *others) if others:
            return ("&&", *(("!=", left, each) for each in others))
    return ("!", value)


def term_text(term: Any) -> str:
    """Return a term as a text: "?x", "?_b" for a blank node, "<iri>" or a literal in quotes."""
    if isinstance(term, Variable):
        return f"?{term}"
    if isinstance(term, BNode):
        return f"?_{term}"
    if isinstance(term, URIRef):
        return f"<{term}>"
    if isinstance(term, Literal):
        return str(term.n3()).removesuffix(_XSD_STRING)  # the datatype of a literal without one
    return str(term)


def path_text(path: Any) -> str:
    """Return a path that cannot be unfolded, with its alternatives sorted."""
    if isinstance(path, AlternativePath):
        return f"({'|'.join(sorted(map(path_text, path.args)))})"
    if isinstance(path, SequencePath):
        return f"({'/'.join(map(path_text, path.args))})"
    if isinstance(path, MulPath):
        return f"{path_text(path.path)}{path.mod}"
    if isinstance(path, InvPath):
        return f"^{path_text(path.arg)}"
    if isinstance(path, NegatedPath):
        return f"!({'|'.join(sorted(map(path_text, path.args)))})"
    return term_text(path)


def is_variable(term: object) -> bool:
    """Return whether a term is a variable or a blank node."""
    return isinstance(term, str) and term.startswith("?")


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions that ``&&`` joins."""
    if isinstance(condition, tuple) and condition and condition[0] == "&&":
        for each in condition[1:]:
            yield from conjuncts(each)
    else:
        yield condition


def variables_in(expression: Expression) -> Iterator[str]:
    """Yield the variables of an expression, as often as they occur."""
    if isinstance(expression, str):
        if expression.startswith("?"):
            yield expression
    else:
        for each in expression:
            yield from variables_in(each)


def renamed(expression: Expression, names: Mapping[str, str] | Mapping[str, Expression]) -> Expression:
    """Return an expression with other names of variables, and operands sorted if their order does not matter."""
    if isinstance(expression, str):
        return names.get(expression, expression)
    parts = [renamed(each, names) for each in expression]
    if parts and parts[0] in _COMMUTATIVE:
        first = 2 if parts[0] in ("in", "not in", "values") else 1  # the value to look for stays in front of the list
        parts[first:] = sorted(parts[first:], key=str)
    return tuple(parts)


def listed_values(condition: Expression) -> tuple[str, tuple[str, ...]] | None:
    """Return a variable and the constants to which a condition restricts it; None if the condition says more."""
    if not isinstance(condition, tuple) or len(condition) < 3 or condition[0] not in ("in", "=", "bind"):
        return None
    operands = [each for each in condition[1:] if isinstance(each, str)]
    if len(operands) != len(condition) - 1:
        return None
    names = [each for each in operands if each.startswith("?")]
    values = tuple(sorted(each for each in operands if not each.startswith("?")))
    return (names[0], values) if len(names) == 1 and values and "UNDEF" not in values else None
