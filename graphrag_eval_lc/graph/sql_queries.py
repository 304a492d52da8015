"""How a SQL query differs from the reference query, part by part. Needs sqlglot.

Common table expressions, subqueries and aliases are replaced by their meaning. If a table is joined several
times, its aliases are matched with those of the reference so that the least differs.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import islice, permutations, product
from typing import Any

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.graph.query_difference import Difference, without_equal
from graphrag_eval_lc.graph.query_forms import TooLargeQueryError
from graphrag_eval_lc.graph.query_parts import Part, Parts, part_differences, refuse_too_large

_DIALECTS = ("", "sqlite", "postgres", "mysql", "tsql")  # the first one that reads a query
_TABLE = re.compile("(·[a-z]\\d+·)(\\w?)")  # a table of one of the queries, and the column that follows
_EQUAL_COLUMNS = re.compile(r"([A-Za-z_][\w.]*) (=|<>) ([A-Za-z_][\w.]*)")
_WORD = re.compile(r"'[^']*'|\b[a-z_]\w*")
_MOST_MATCHINGS = 120
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_NEGATED = {"EQ": "NEQ", "NEQ": "EQ", "LT": "GTE", "LTE": "GT", "GT": "LTE", "GTE": "LT"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def sql_differences(reference: str, actual: str) -> list[Difference]:
    """Compare two SQL queries. Names of tables replace their aliases; case and white space do not matter.

    Raises:
        MissingExtraError: sqlglot is not installed.
        TooLargeQueryError: One of them is too large.
        ValueError: One of them cannot be parsed.

    Example:
        >>> reference = "SELECT l.name FROM lines l WHERE l.kv > 300"
        >>> for each in sql_differences(reference, "select x.title from LINES x where x.kv > 400"):
        ...     print(each.sentence)
        returns title instead of name
        filters by kv > 400 instead of kv > 300
    """
    refuse_too_large(reference, actual)
    try:
        wanted, given = _SqlQuery(reference, "r"), _SqlQuery(actual, "a")
        known = wanted.columns_of_tables() + given.columns_of_tables()
        for each in (wanted, given):
            each.resolve(known)
        theirs = wanted.parts({})
        matchings = islice(_matchings(wanted, given), _MOST_MATCHINGS)
        attempts = [(names, given.parts(names)) for names in matchings]
        names, _ = min(attempts, key=lambda attempt: len(list(part_differences(theirs, attempt[1], _is_pair))))
        ours = given.parts(names)
    except ImportError as problem:
        raise MissingExtraError("Comparing SQL queries", "sql", "sqlglot") from problem
    except RecursionError as problem:
        raise TooLargeQueryError("it is too large to be compared") from problem
    stars = [any(text.endswith("*") for text in each["column"]) for each in (theirs, ours)]
    if all(stars) or (any(stars) and (wanted.has_subqueries() or given.has_subqueries())):
        theirs, ours = ({**each, "column": ()} for each in (theirs, ours))  # the columns of * are unknown
    labels = wanted.labels()
    own_labels = labels | {names[mark]: label for mark, label in given.labels().items()}
    shown = (_shown(labels, wanted.written | wanted.turned), _shown(own_labels, given.written | given.turned))
    return without_equal(part_differences(theirs, ours, _is_pair, shown))


def _shown(labels: Mapping[str, str], written: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that shows a text with the names as its query writes them."""

    def named(table: re.Match[str]) -> str:
        label = labels.get(table[1], table[1])
        return f"{label}{'.' if label and table[2] else ''}{table[2]}"

    def shown(text: str) -> str:
        with_tables = _TABLE.sub(named, written.get(text, text))
        shown_text = _WORD.sub(lambda word: written.get(word[0], word[0]), with_tables)
        if found := _EQUAL_COLUMNS.fullmatch(shown_text):
            left, right = sorted((found[1], found[3]))
            return f"{left} {found[2]} {right}"
        return shown_text

    return shown


def _matchings(wanted: "_SqlQuery", given: "_SqlQuery") -> Iterator[Mapping[str, str]]:
    """Yield the ways in which the tables of a query can be those of the reference query.

    Tables match those of the same name. If each query has one table left, these two match.
    """
    choices: list[list[dict[str, str]]] = []
    for name in dict.fromkeys(given.tables.values()):
        own, theirs = ([mark for mark, table in each.tables.items() if table == name] for each in (given, wanted))
        more = [*theirs, *own[len(theirs) :]]
        choices.append([dict(zip(own, chosen, strict=True)) for chosen in islice(permutations(more, len(own)), 24)])
    for chosen in product(*choices):
        names = {mark: other for matched in chosen for mark, other in matched.items()}
        missing, extra = set(wanted.tables) - set(names.values()), [own for own, other in names.items() if own == other]
        if len(missing) == len(extra) == 1:
            names[extra[0]] = missing.pop()
        yield names


def _is_pair(part: Part, old: str, new: str) -> bool:
    """Return whether two conditions are on the same columns."""
    columns = [sorted(re.findall(r"·\w+·\w+", text)) for text in (old, new)]
    is_same_side = old.split(" ")[0] == new.split(" ")[0]
    return part == "condition" and columns[0] == columns[1] and (columns[0] != [] or is_same_side)


class _SqlQuery:
    """A query whose columns are resolved to their tables.

    Attributes:
        tables: The name of each table of the query, by a mark that replaces its alias.
        aliases: What the query calls each.
        written: How the query writes a name, by the name in lower case.
        turned: How the query writes a join that its parts have from the other side.
    """

    def __init__(self, query: str, side: str) -> None:
        self._exp: Any = import_module("sqlglot.expressions")
        self._tree = _parsed(query)
        self.written: dict[str, str] = {}
        for identifier in self._tree.find_all(self._exp.Identifier):
            self.written[identifier.this.lower()] = identifier.this
            identifier.set("this", identifier.this.lower())
            identifier.set("quoted", False)
        self._scopes = import_module("sqlglot.optimizer.scope").traverse_scope(self._tree)
        self.tables: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.turned: dict[str, str] = {}
        self._marks: dict[int, str] = {}
        for scope in self._scopes:
            for alias, source in scope.sources.items():
                if isinstance(source, self._exp.Table) and id(source) not in self._marks:
                    mark = self._marks[id(source)] = f"·{side}{len(self.tables)}·"
                    self.tables[mark], self.aliases[mark] = source.name, alias
        for scope in self._scopes:
            for node, source in scope.selected_sources.values():
                at = source
                while at is not None and not isinstance(at, self._exp.Table):  # a subquery of one table is that table
                    inner = list(at.selected_sources.values())
                    at = inner[0][1] if len(inner) == 1 else None
                node.meta["mark"] = "" if at is None else self._marks[id(at)]

    def labels(self) -> dict[str, str]:
        """Return how tables are shown: by name, by alias if there are several of that name, not at all if it is one."""
        if len(self.tables) == 1:
            return dict.fromkeys(self.tables, "")
        numbers = Counter(self.tables.values())
        return {mark: self.aliases[mark] if numbers[name] > 1 else name for mark, name in self.tables.items()}

    def has_subqueries(self) -> bool:
        """Return whether it has more than one SELECT."""
        return len(list(self._tree.find_all(self._exp.Select))) > 1

    def columns_of_tables(self) -> list[tuple[str, str]]:
        """Return the columns that name their table: table and column."""
        return [
            (source.name, column.name)
            for scope in self._scopes
            for column in scope.find_all(self._exp.Column)
            if isinstance(source := scope.sources.get(column.table), self._exp.Table)
        ]

    def resolve(self, known: list[tuple[str, str]]) -> None:
        """Give each column the mark of its table, or replace it with what a subquery computes under its name.

        Args:
            known: Columns of tables, of this and of other queries.
        """
        for scope in self._scopes:
            for join in scope.find_all(self._exp.Join):
                self._write_using(join, scope)
            for column in list(scope.find_all(self._exp.Column)):
                if (source := self._source_of(column, scope, known)) is not None:
                    self._replace(column, source, known)

    def _write_using(self, join: Any, scope: Any) -> None:
        """Write ``USING (a)`` as the condition that it is."""
        using = join.args.get("using")
        if using and (first := scope.expression.args.get("from_") or scope.expression.args.get("from")) is not None:
            left, right = first.this.alias_or_name, join.this.alias_or_name
            equal = [
                self._exp.EQ(this=self._exp.column(each.name, left), expression=self._exp.column(each.name, right))
                for each in using
            ]
            join.set("on", self._exp.and_(*equal))
            join.set("using", None)

    def _source_of(self, column: Any, scope: Any, known: list[tuple[str, str]]) -> Any:
        """Return the table or subquery of a column; None if the query does not say."""
        at = scope
        while at is not None and column.table:
            if column.table in at.sources:
                return at.sources[column.table]
            at = at.parent
        if column.table:
            return None
        sources = [source for _, source in scope.selected_sources.values()]
        if len(sources) == 1:
            return sources[0]
        having = [
            source
            for source in sources
            if (
                (source.name, column.name) in known
                if isinstance(source, self._exp.Table)
                else column.name in source.expression.named_selects
            )
        ]
        return having[0] if len(having) == 1 else None

    def _replace(self, column: Any, source: Any, known: list[tuple[str, str]]) -> None:
        if isinstance(source, self._exp.Table):
            column.set("table", self._exp.Identifier(this=self._marks[id(source)], quoted=False))
            return
        selects = getattr(source.expression, "selects", ())
        found = next((each for each in selects if each.alias_or_name == column.name), None)
        if found is None and any(each.is_star for each in selects):
            column.set("table", None)
            if (inner := self._source_of(column, source, known)) is not None:
                self._replace(column, inner, known)
        elif found is not None and column.parent is not None:
            computed = found.unalias().copy()
            is_column = isinstance(computed, self._exp.Column | self._exp.Func)
            alias = column.parent if isinstance(column.parent, self._exp.Alias) else None
            column.replace(computed if is_column or alias else self._exp.paren(computed))

    def parts(self, names: Mapping[str, str]) -> Parts:
        """Return the parts of the query, with other marks of its tables."""
        exp = self._exp
        tree = self._tree.copy()
        for identifier in tree.find_all(exp.Identifier):
            identifier.set("this", names.get(identifier.this, identifier.this))
        last = list(_last_selects(tree, exp))
        inner = [each for each in tree.find_all(exp.Select) if each not in last]
        columns = [each.unalias() for each in last[0].expressions]
        aliases = {each.alias: each.unalias() for each in last[0].expressions if each.alias}
        order = last[0].args.get("order") or tree.args.get("order")
        joins = list(tree.find_all(exp.Join))
        self.turned = {}
        # Tables with a comma between them are joined, and a condition of an inner join is one of WHERE.
        conditions = [self._without_aliases(each).this for each in tree.find_all(exp.Where, exp.Having)]
        conditions += [each.args["on"] for each in joins if each.args.get("on") is not None]
        groups = (
            [self._text(self._meant(each, columns, aliases)) for each in group.expressions]
            for group in tree.find_all(exp.Group)
        )
        return {
            "form": [
                f"{each.key.upper()}{'' if each.args.get('distinct') else ' ALL'}"
                for each in tree.find_all(exp.SetOperation)
            ],
            "table": list(self.tables.values()),
            "aggregate": [self._text(each) for each in columns if each.find(exp.AggFunc)],
            "column": [self._text(each) for each in columns if not each.find(exp.AggFunc)],
            "condition": [self._text(part) for each in conditions for part in self._conjuncts(each)],
            "join": [self._outer_join(each, names) for each in joins if each.side or each.method],
            "group": [", ".join(sorted(group)) for group in groups],
            "order": [", ".join(self._order(each, columns, aliases) for each in order.expressions)] if order else [],
            "limit": [
                *(text for each in {id(tree): tree, id(last[0]): last[0]}.values() for text in _limits(each, "")),
                *(text for each in inner for text in _limits(each, " in a subquery")),
            ],
            "distinct": [
                *("DISTINCT" for each in last if each.args.get("distinct")),
                *("DISTINCT in a subquery" for each in inner if each.args.get("distinct")),
            ],
        }

    def _outer_join(self, join: Any, names: Mapping[str, str]) -> str:
        """Return a join with the table whose rows may be missing; two tables as LEFT JOIN, whichever comes first."""
        if join.side not in ("LEFT", "RIGHT"):
            return f"{join.side or join.method} JOIN"
        joined = join.parent  # a SELECT, or the first table of a join in parentheses
        first = joined.args.get("from_") or joined.args.get("from")
        tables = (joined if first is None else first.this, join.this)
        marks = (each.unnest().meta.get("mark", "") for each in tables)
        left, right = (f" {names.get(mark, mark)}".rstrip() for mark in marks)
        if join.side == "LEFT" or len(joined.args["joins"]) > 1:
            return f"{join.side} JOIN{right}"
        self.turned[f"LEFT JOIN{left}"] = f"RIGHT JOIN{right}"
        return f"LEFT JOIN{left}"

    def _order(self, each: Any, columns: list[Any], aliases: Mapping[str, Any]) -> str:
        return f"{self._text(self._meant(each.this, columns, aliases))} {'DESC' if each.args.get('desc') else 'ASC'}"

    def _meant(self, value: Any, columns: list[Any], aliases: Mapping[str, Any]) -> Any:
        """Return the column that a number or an alias means in ORDER BY and GROUP BY."""
        if isinstance(value, self._exp.Literal) and value.is_int and 0 < int(value.name) <= len(columns):
            return columns[int(value.name) - 1]
        return aliases.get(value.name, value) if isinstance(value, self._exp.Column) else value

    def _without_aliases(self, clause: Any) -> Any:
        """Return a condition; in HAVING what is computed replaces its alias."""
        if isinstance(clause, self._exp.Having):
            computed = {each.alias: each.unalias() for each in clause.parent.expressions if each.alias}
            for column in list(clause.find_all(self._exp.Column)):
                if column.name in computed and not column.find_ancestor(self._exp.AggFunc):
                    column.replace(computed[column.name].copy())
        return clause

    def _conjuncts(self, condition: Any) -> Iterator[Any]:
        exp = self._exp
        if isinstance(condition, exp.And):
            for each in condition.flatten():
                yield from self._conjuncts(each)
        elif isinstance(condition, exp.Paren):
            yield from self._conjuncts(condition.this)
        elif isinstance(condition, exp.Not) and isinstance(either := condition.this.unnest(), exp.Or):
            for each in either.flatten():
                yield from self._conjuncts(exp.Not(this=each.copy()))
        elif isinstance(condition, exp.Between):
            yield exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())
            yield exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())
        else:
            yield condition

    def _text(self, node: Any) -> str:
        """Return an expression as text, the same for the same condition in other words."""
        exp = self._exp
        if isinstance(node, exp.Paren):
            return self._text(node.this)
        if isinstance(node, exp.Or):
            parts = list(node.flatten())
            left = {self._text(each.this) for each in parts if isinstance(each, exp.EQ)}
            if len(left) == 1 and all(isinstance(each, exp.EQ) for each in parts):  # one column, of several values
                return self._one_of(parts[0].this, [each.expression for each in parts])
            return " OR ".join(sorted(map(self._text, parts)))
        if isinstance(node, exp.And):
            return " AND ".join(sorted(self._text(part) for part in node.flatten()))
        if isinstance(node, exp.Not):
            negated = _NEGATED.get(type(node.this.unnest()).__name__)
            if negated is not None:
                inner = node.this.unnest()
                return self._text(getattr(exp, negated)(this=inner.this.copy(), expression=inner.expression.copy()))
            text = self._text(node.this)
            return text.replace(" IS ", " IS NOT ") if isinstance(node.this, exp.Is) else f"NOT {text}"
        if isinstance(node, exp.In) and node.expressions:
            return self._one_of(node.this, node.expressions)
        if (sign := _SIGNS.get(type(node).__name__)) is not None:
            sides = [self._text(node.this), self._text(node.expression)]
            if sign not in _MIRRORED:
                sides.sort(key=lambda text: (text[:1] in "'0123456789(", text))
            elif isinstance(node.this, exp.Literal):  # 3 < x is x > 3
                sign = _MIRRORED[sign]
                sides.reverse()
            return f" {sign} ".join(sides)
        node = node.copy()
        if isinstance(node, exp.Query):
            return self._short(node)
        for inner in list(node.find_all(exp.Query)):
            if not inner.find_ancestor(exp.Query):
                inner.replace(exp.Identifier(this=self._short(inner), quoted=False))
        return str(node.sql(comments=False)).replace("COUNT(1)", "COUNT(*)").replace("·.", "·")

    def _short(self, query: Any) -> str:
        """Return a subquery by what it returns; its other parts are compared like those of the query."""
        text = f"SELECT {', '.join(self._text(each.unalias()) for each in query.selects)} …"
        return text if isinstance(query.parent, self._exp.Exists) else f"({text})"

    def _one_of(self, value: Any, others: list[Any]) -> str:
        if len(others) == 1:
            return self._text(self._exp.EQ(this=value.copy(), expression=others[0].copy()))
        return f"{self._text(value)} IN ({', '.join(sorted(map(self._text, others)))})"


def _limits(query: Any, place: str) -> Iterator[str]:
    for name in ("limit", "offset"):
        found = query.args.get(name)
        number = None if found is None else found.args.get("expression") or found.args.get("count")
        if found is not None and (number is None or number.name.upper() != "ALL"):
            yield f"{name.upper()} {1 if number is None else number.sql()}{place}"  # FETCH FIRST ROW is one


def _last_selects(tree: Any, exp: Any) -> Iterator[Any]:
    """Yield the SELECTs whose rows are the results: one, or those that UNION and the like combine."""
    if isinstance(tree, exp.SetOperation):
        yield from _last_selects(tree.this, exp)
        yield from _last_selects(tree.expression, exp)
    elif isinstance(tree, exp.Subquery):
        yield from _last_selects(tree.this, exp)
    else:
        yield tree


def _parsed(query: str) -> Any:
    """Parse a SELECT, in the first dialect that reads it."""
    glot: Any = import_module("sqlglot")
    problems = []
    for dialect in _DIALECTS:
        try:
            tree = glot.parse_one(query, dialect=dialect)
        except glot.errors.SqlglotError as problem:
            problems.append(str(problem))
        else:
            if isinstance(tree, glot.exp.Query):
                return tree
            problems.append("it is not a SELECT")
    raise ValueError(problems[0])
