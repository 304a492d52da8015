"""Linting and comparing SPARQL queries: queries per second, compared with rdflib's parser alone.

Run it as ``python benchmarks/graph_lint.py``; ``--queries 10000`` uses more. The queries are the demo's references with
other IRIs, as in a dataset generated from templates: they are parsed once per template. The second figure is for
queries that differ in more than IRIs and literals, so that each is parsed. The exit code is 1 if fewer than 100 queries
per second are linted in the first case.
"""

import argparse
import random
import re
import sys
import time
from collections.abc import Callable

from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery

from graphrag_eval_lc import load_dataset
from graphrag_eval_lc.demo import DATASET_PATH, VOCABULARY_PATH
from graphrag_eval_lc.graph import lint_query, load_vocabulary, query_differences

GOAL = 100


def queries_of_demo() -> list[str]:
    """Return the demo's reference queries."""
    steps = (
        step
        for template in load_dataset(DATASET_PATH)
        for question in template["questions"] or ()
        for group in question.get("reference_steps") or ()
        for step in group
    )
    return [step["args"]["query"] for step in steps if step["name"] == "sparql_query"]


def varied(queries: list[str], number: int) -> list[str]:
    """Return a number of queries, each with other entity IRIs."""
    chance = random.Random(7)

    def other(_: re.Match[str]) -> str:
        return f"urn:uuid:{chance.getrandbits(128):032x}"

    return [re.sub(r"urn:uuid:[\w-]+", other, queries[at % len(queries)]) for at in range(number)]


def renamed(queries: list[str]) -> list[str]:
    """Return the queries with other variable names, so that no two have the same form."""
    return [re.sub(r"\?(\w+)", rf"?\g<1>_{at}", query) for at, query in enumerate(queries)]


def rate(work: Callable[[str], object], queries: list[str]) -> float:
    """Return the number of queries processed per second of CPU time."""
    started = time.process_time()
    for query in queries:
        work(query)
    return len(queries) / (time.process_time() - started)


def main() -> int:
    """Print the rates and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000, help="how many queries (default: 1000)")
    number = parser.parse_args().queries
    vocabulary = load_vocabulary(VOCABULARY_PATH)
    references = queries_of_demo()
    queries = varied(references, number)
    rdflib_alone = rate(lambda query: translateQuery(parseQuery(query)), queries[:200])
    checked = rate(lambda query: lint_query(query, vocabulary), queries)
    others = renamed(queries[:200])
    checked_others = rate(lambda query: lint_query(query, vocabulary), others)
    pairs = iter(varied(list(reversed(references)), number))
    compared = rate(lambda query: query_differences(query, next(pairs)), varied(references, number))
    print(f"rdflib's parser alone: {rdflib_alone:.0f} queries a second")
    print(f"lint_query: {checked:.0f} queries a second ({checked / rdflib_alone:.2f} times)")
    print(f"lint_query, each query another one: {checked_others:.0f} queries a second")
    print(f"query_differences: {compared:.0f} pairs a second")
    print(f"goal, at least {GOAL} queries checked a second: {'met' if checked >= GOAL else 'NOT MET'}")
    return 0 if checked >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
