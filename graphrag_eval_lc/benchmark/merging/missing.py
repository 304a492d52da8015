"""What parts of a run leave open: which samples nobody answered, and of which shards these are."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphrag_eval_lc.benchmark.merging.parts import Part
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.evaluation.shards import Shard, shard_number
from graphrag_eval_lc.records import Key
from graphrag_eval_lc.texts import counted, listed, plural

MISSING: Final = "missing"
"""The reason of a merged run that is not complete."""
NOT_SCORED: Final = "not scored"
"""The reason of a merged run whose responses are still to be scored."""

_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Missing:
    """The samples that are still to be asked.

    Attributes:
        samples: How many they are.
        shards: The shards that are not there and have some of them.
        message: All of it in one sentence.
    """

    samples: int
    shards: tuple[Shard, ...]
    message: str


def missing_samples(parts: Sequence[Part], samples: Sequence[Sample], is_answered: Callable[[Key], bool]) -> Missing:
    """Return what parts of a run leave open.

    Args:
        parts: The parts.
        samples: All samples of the run.
        is_answered: Tells whether a sample has a response that counts.
    """
    keys = [sample.key for sample in samples if not is_answered(sample.key)]
    if not keys:
        return Missing(0, (), "")
    known = {shard for part in parts for shard in part.shards}
    of = next((shard.of for shard in known), None)
    sentence = f"{counted(len(keys), 'sample')} of {len(samples):,} {plural(len(keys), 'is', 'are')} not answered"
    if of is None:
        return Missing(len(keys), (), f"{sentence}: {listed([_name(key) for key in keys])}")
    sizes = Counter(shard_number(key, of) for key in keys)
    absent = tuple(shard for number in sorted(sizes) if (shard := Shard(number, of)) not in known)
    begun = [Shard(number, of) for number in sorted(sizes) if Shard(number, of) in known]
    texts = []
    if absent:
        names, has = listed(list(map(str, absent)), _MOST_NAMED), plural(len(absent), "is", "are")
        texts.append(f"{plural(len(absent), 'shard')} {names} {has} missing")
    if begun:
        names = listed([f"{shard} ({sizes[shard.number]:,} left)" for shard in begun], _MOST_NAMED)
        texts.append(f"{plural(len(begun), 'shard')} {names} did not come to {plural(len(begun), 'its', 'their')} end")
    return Missing(len(keys), absent, f"{sentence}: {', and '.join(texts)}")


def stopped_of(parts: Sequence[Part], missing: Missing) -> dict[str, Any] | None:
    """Return why a merged run is not complete, as ``BenchmarkRun.stopped`` tells it; None where it is."""
    if not missing.samples:
        return None
    why = {
        str(stopped.get("message")): part.path
        for part in parts
        if isinstance(stopped := part.record.get("stopped"), dict)
    }
    reasons = "".join(f"; {path} was stopped: {message}" for message, path in list(why.items())[:3])
    return {"reason": MISSING, "message": f"{missing.message}{reasons}", "left_out": missing.samples}


def _name(key: Key) -> str:
    question_id, repeat = key
    return question_id if repeat == 1 else f"{question_id} (repeat {repeat})"
