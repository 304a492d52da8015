"""How often groundedness without a model is wrong on 250 answers of real agents, and which errors it detects.

Run it as ``python benchmarks/answer_grounding.py``; it takes a minute. It needs the recorded runs in the folder
``real_runs`` of ``GRAPHRAG_EVAL_LC_CONFORMANCE_DIR`` and does nothing without it. It measures:

* **alarms**: answers with a value that is in no row of their own steps. All are printed, for review.
* **other steps**: each answer checked against the steps of 15 questions of other templates: how many are fully
  grounded?
* **changed digit**: one digit of an IRI or a number that was found is changed, in up to 3 values of an answer.
* **swapped values**: two rows of a table in an answer swap their last numbers, and two list items their IRIs.
* **time**: milliseconds per answer, including reading its steps.

``--verdicts N`` prints N verdicts for manual review. The exit code is 1 if a goal is missed.
"""

import argparse
import itertools
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_eval_lc import load_dataset, load_responses
from graphrag_eval_lc.answers.answer_text import answer_text
from graphrag_eval_lc.answers.evidence import Evidence
from graphrag_eval_lc.answers.grounding import Grounding
from graphrag_eval_lc.matching.step_views import StepViews

OTHERS, CHANGES = 15, 3
MOST_ALARMS, MOST_WHOLE, LEAST_CAUGHT, LEAST_SWAPPED, MOST_MS = 0.02, 0.03, 0.97, 0.95, 5.0
# Reported answers in which reviewers confirmed something the agent did not find; every other alarm is false.
RIGHT_ALARMS = frozenset(
    {
        "question_2b577dbeb7d8284f17092cbf67c9a11e",  # calls a zone NO3, which is in none of its steps
        "question_c18ba423e25a573ad88f0616d24105ff",  # says 669 values but lists 670
    }
)


class Sample(NamedTuple):
    """A question and an agent's answer to it."""

    run: str
    template: str
    id: str
    question: str
    answer: str
    steps: list[Any]

    def evidence(self) -> Evidence:
        """Return what its steps returned, read again."""
        return Evidence([VIEWS.actual_view(step) for step in self.steps])


VIEWS = StepViews()


def samples_in(folder: Path) -> list[Sample]:
    """Return the answers in the recorded runs."""
    found = []
    for run in ("substations", "timeseries"):
        responses = load_responses(folder / run / "responses.jsonl")
        for template in load_dataset(folder / run / "reference.yaml"):
            for question in template["questions"] or ():
                response = responses[question["id"]]
                answer = answer_text(response["actual_answer"])
                steps = response["actual_steps"]
                found.append(
                    Sample(run, template["template_id"], question["id"], question["question_text"], answer, steps)
                )
    return found


def changed_digits(grounding: Grounding, draw: random.Random) -> Iterator[tuple[str, str, int, int]]:
    """Yield the kind of a value, an answer with one digit of the value changed, and the value's line and position."""
    fitting = [each.value for each in grounding.values if each.counts and each.verdict != "none"]
    fitting = [each for each in fitting if each.kind in ("iri", "number") and re.search(r"\d", each.text)]
    lines = grounding.text.split("\n")
    for value in draw.sample(fitting, min(CHANGES, len(fitting))):
        place = draw.choice([value.start + each.start() for each in re.finditer(r"\d", value.text)])
        line = lines[value.line]
        digit = draw.choice([each for each in "123456789" if each != line[place]])
        changed = [*lines[: value.line], line[:place] + digit + line[place + 1 :], *lines[value.line + 1 :]]
        yield value.kind, "\n".join(changed), value.line, value.start


_ROW_NUMBER = re.compile(r"(?<![\w.:-])(-?\d+\.\d+)(?=[^\d.]*$)")


def swapped_rows(text: str, draw: random.Random) -> str | None:
    """Return an answer in which two neighbouring table rows have swapped their last numbers."""
    lines = text.split("\n")
    rows = [
        (at, found)
        for at, line in enumerate(lines)
        if len(re.findall(r"\d{4}-\d\d-\d\d", line)) == 1 and (found := _ROW_NUMBER.search(line))
    ]
    pairs = [(one, two) for one, two in itertools.pairwise(rows) if one[1][0] != two[1][0]]
    if not pairs:
        return None
    (one, number), (two, other) = draw.choice(pairs)
    lines[one] = lines[one][: number.start()] + other[0] + lines[one][number.end() :]
    lines[two] = lines[two][: other.start()] + number[0] + lines[two][other.end() :]
    return "\n".join(lines)


_ITEM_IRI = re.compile(r"urn:uuid:[0-9a-f-]{36}")


def swapped_items(text: str) -> str | None:
    """Return an answer in which two lines with a name and one IRI have swapped their IRIs."""
    lines = text.split("\n")
    fitting = [at for at, line in enumerate(lines) if len(_ITEM_IRI.findall(line)) == 1 and line.lstrip()[:1] == "-"]
    fitting = [at for at in fitting if re.search(r"\*\*.+\*\*", lines[at])]
    if len(fitting) < 2:
        return None
    one, two = fitting[:2]
    first, second = _ITEM_IRI.findall(lines[one])[0], _ITEM_IRI.findall(lines[two])[0]
    if first == second:
        return None
    lines[one], lines[two] = lines[one].replace(first, second), lines[two].replace(second, first)
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", type=int, default=0, help="Print so many verdicts, to be read by hand.")
    options = parser.parse_args()
    folder = os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR")
    if not folder:
        print("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set: there are no recorded runs to measure.")
        return 0
    draw, samples = random.Random(1), samples_in(Path(folder) / "real_runs")
    groundings, took = [], []
    samples[0].evidence().tables  # noqa: B018 - the first reading imports what the readers need
    for sample in samples:
        start = time.process_time()
        groundings.append(Grounding(sample.answer, sample.question, sample.evidence()))
        groundings[-1].lines_in_one_row()
        took.append(1000 * (time.process_time() - start))
    with_values = [at for at, each in enumerate(groundings) if each.share() is not None]
    with_lines = [at for at, each in enumerate(groundings) if each.lines_in_one_row() is not None]
    alarms = [at for at in with_values if groundings[at].share() != 1]
    in_lines = [at for at in with_lines if groundings[at].lines_in_one_row() != 1]
    print(f"{len(samples)} answers, {len(with_values)} with values that count, {len(with_lines)} with records")
    print(Counter((each.value.kind, each.verdict) for one in groundings for each in one.values))
    for at in sorted({*alarms, *in_lines}):
        missing = [each.value.text for each in groundings[at].values if each.counts and each.verdict == "none"]
        mark = "right alarm" if samples[at].id in RIGHT_ALARMS else "false alarm"
        print(
            f"  {mark} {samples[at].id}: {groundings[at].share()}, {groundings[at].lines_in_one_row()}: {missing[:5]}"
        )

    whole = tried = 0
    for at in with_values:
        sample = samples[at]
        others = [each for each in samples if each.run == sample.run and each.template != sample.template]
        for other in draw.sample(others, OTHERS):
            share = Grounding(sample.answer, sample.question, other.evidence()).share()
            tried, whole = tried + 1, whole + (share == 1)
    changed: Counter[tuple[str, str, bool]] = Counter()
    swapped: Counter[tuple[str, bool]] = Counter()
    for at in with_values:
        sample, evidence = samples[at], samples[at].evidence()
        for kind, text, line, start in changed_digits(groundings[at], draw):
            verdicts = {
                each.verdict
                for each in Grounding(text, sample.question, evidence).values
                if each.value.line == line and each.value.start <= start < each.value.end
            }
            changed[sample.run, kind, "none" in verdicts] += 1
            if "none" not in verdicts:
                print("  missed", sample.id, text.split("\n")[line].strip()[:100], verdicts)
        before = groundings[at].lines_in_one_row()
        for name, text_of in (("rows", swapped_rows(sample.answer, draw)), ("items", swapped_items(sample.answer))):
            if text_of is not None:
                after = Grounding(text_of, sample.question, evidence).lines_in_one_row()
                swapped[name, before is not None and after is not None and after < before] += 1

    def caught(*key: str) -> tuple[int, int]:
        hits = sum(n for each, n in changed.items() if each[:-1] == key[: len(each) - 1] and each[-1])
        return hits, sum(n for each, n in changed.items() if each[:-1] == key[: len(each) - 1])

    all_changed = sum(n for each, n in changed.items() if each[-1]), sum(changed.values())
    rows = swapped["rows", True], swapped["rows", True] + swapped["rows", False]
    items = swapped["items", True], swapped["items", True] + swapped["items", False]
    false = len([at for at in {*alarms, *in_lines} if samples[at].id not in RIGHT_ALARMS])
    table = [
        ("answers with a false alarm", false, len(with_values), MOST_ALARMS, False),
        ("grounded whole in another template's steps", whole, tried, MOST_WHOLE, False),
        ("changed digits caught", *all_changed, LEAST_CAUGHT, True),
        *(
            (f"  of {run}, {kind}", *caught(run, kind), None, True)
            for run, kind in sorted({each[:2] for each in changed})
        ),
        ("swapped values of table rows caught", *rows, LEAST_SWAPPED, True),
        ("swapped IRIs of list items caught", *items, None, True),
    ]
    is_missed = False
    for what, hits, of, goal, is_least in table:
        share = hits / of if of else 0.0
        missed = goal is not None and (share < goal if is_least else share > goal)
        is_missed |= missed
        wanted = (
            ""
            if goal is None
            else f"  (goal: at {'least' if is_least else 'most'} {goal:.0%}{', MISSED' if missed else ''})"
        )
        print(f"{what:<46} {hits:>5} of {of:>5}  {share:7.2%}{wanted}")
    mean, ordered = sum(took) / len(took), sorted(took)
    print(
        f"milliseconds an answer: mean {mean:.2f}, median {ordered[len(ordered) // 2]:.2f}, greatest {ordered[-1]:.1f}"
        f"  (goal: a mean of at most {MOST_MS:g})"
    )
    every = [(at, each) for at, one in enumerate(groundings) for each in one.values]
    for at, found in draw.sample(every, options.verdicts):
        value, context = found.value, groundings[at].text.split("\n")[found.value.line].strip()
        print(f"{at:>3} {found.verdict:<9} {value.kind:<6} {value.text!r:<50.60} {found.at}\n      {context:.150}")
    return int(is_missed or mean > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
