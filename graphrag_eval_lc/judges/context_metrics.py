"""Context precision, utilization and recall: how useful the retrieved contexts are for an answer."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Literal

from pydantic import field_validator

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.json_values import document_text, parse_json
from graphrag_eval_lc.judges.answer_correctness import Claim
from graphrag_eval_lc.judges.context_verdicts import ContextJudge
from graphrag_eval_lc.judges.model_interface import (
    ClosedAnswer,
    CutAnswerError,
    TooLongError,
    given_judge_model,
    paid_error,
    total_cost,
)
from graphrag_eval_lc.judges.prompts import given_text, load_prompt
from graphrag_eval_lc.judges.scores import JudgeScore
from graphrag_eval_lc.judges.text_parts import halves_of


class ContextPrecision:
    """The mean of precision@k over the ranks k of the contexts that are of use for the reference answer.

    ``Σ_k (precision@k · v_k) / Σ_k v_k`` with a verdict v of 0 or 1 for each context, as in ragas, without its
    epsilon. A model is asked once for each context, all at the same time; where question and reference are long, the
    first alone, so that the provider has them in its cache for the others.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        batch: How many contexts one request judges. The reference goes along with each request, so that 10 cost about a
            tenth where it is long.
    """

    def __init__(self, llm: Any, *, batch: int = 1) -> None:
        self._judge = ContextJudge(given_judge_model(llm), batch)

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer, or the texts of the reference contexts.
            retrieved_contexts: The retrieved texts by rank. One that is None or blank is of no use, and the model is
                not asked about it.

        Returns:
            The value from 0 to 1: 0 where none is of use or nothing was retrieved, None where no context has a text.
            ``details``: ``verdicts`` (0 or 1) and ``reasons``, one for each context.

        Raises:
            JudgeError: The question or the reference is blank, or the model gives no usable answer.
        """
        question = given_text("user_input", user_input)
        return await contexts_score(self._judge, question, given_text("reference", reference), retrieved_contexts)

    def score(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, reference=reference, retrieved_contexts=retrieved_contexts)
        )


async def contexts_score(
    judge: ContextJudge, question: str, answer: str, retrieved_contexts: Sequence[str | None]
) -> JudgeScore:
    """Return how far up the contexts rank that are of use for an answer.

    Raises:
        JudgeError: The contexts are no list of texts, or the model gives no usable answer.
    """
    texts = given_contexts(retrieved_contexts)
    if not texts:
        return JudgeScore(0.0, "Nothing was retrieved.", 0.0, {"verdicts": [], "reasons": []})
    if not any(texts):
        return JudgeScore(None, "No retrieved context has a text.", 0.0)
    judged, cost = await judge.ajudge(question, answer, texts)
    lines = (
        f"{rank}. {'Of use' if one.verdict else 'Of no use'}: {one.reason}" for rank, one in enumerate(judged, start=1)
    )
    verdicts = [one.verdict for one in judged]
    return JudgeScore(
        mean_precision(verdicts),
        "\n".join(lines),
        cost,
        {"verdicts": verdicts, "reasons": [one.reason for one in judged]},
    )


def given_contexts(retrieved_contexts: Sequence[str | None]) -> list[str]:
    """Return the texts of contexts, empty where one is None or blank.

    Raises:
        JudgeError: It is no list of texts.
    """
    if isinstance(retrieved_contexts, str) or not isinstance(retrieved_contexts, Sequence):
        raise JudgeError(f"retrieved_contexts is no list of texts but {type(retrieved_contexts).__name__}")
    for rank, text in enumerate(retrieved_contexts, start=1):
        if text is not None and not isinstance(text, str):
            raise JudgeError(f"retrieved context {rank} is no text but {type(text).__name__}")
    return [text if text and text.strip() else "" for text in retrieved_contexts]


def mean_precision(verdicts: Sequence[int]) -> float:
    """Return the mean of precision@k over the ranks k whose verdict is 1; 0 where there is none.

    Example:
        >>> mean_precision([1, 0]), mean_precision([0, 1])
        (1.0, 0.5)
    """
    precisions: list[float] = []
    for rank, verdict in enumerate(verdicts, start=1):
        if verdict:
            precisions.append((len(precisions) + 1) / rank)
    return sum(precisions) / len(precisions) if precisions else 0.0


class ContextUtilization:
    """Context precision with the actual answer in place of the reference; the prompt is the same.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
        batch: How many contexts one request judges.
    """

    def __init__(self, llm: Any, *, batch: int = 1) -> None:
        self._judge = ContextJudge(given_judge_model(llm), batch)

    async def ascore(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            response: The actual answer.
            retrieved_contexts: The retrieved texts by rank, as for ``ContextPrecision``.

        Returns:
            As ``ContextPrecision``; the value is 0 for a blank answer.

        Raises:
            JudgeError: The question is blank, or the model gives no usable answer.
        """
        question = given_text("user_input", user_input)
        if isinstance(response, str) and not response.strip():
            return JudgeScore(0.0, "The answer is blank.", 0.0)
        return await contexts_score(self._judge, question, given_text("response", response), retrieved_contexts)

    def score(self, *, user_input: str, response: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, response=response, retrieved_contexts=retrieved_contexts)
        )


class Statement(ClosedAnswer):
    """One statement of the reference, and whether the contexts support it."""

    statement: Claim
    reason: str
    attributed: Literal[0, 1]


class Statements(ClosedAnswer):
    """The reference, statement by statement: what a model answers."""

    statements: list[Statement]

    @field_validator("statements")
    @classmethod
    def _some(cls, statements: list[Statement]) -> list[Statement]:
        if not statements:
            raise ValueError("the reference answer has at least one statement")
        return statements


class ContextRecall:
    """The share of the statements of the reference answer that the retrieved contexts support, as in ragas.

    In one request the model splits the reference and judges each statement. Where the texts are too long for it, the
    reference is judged in parts; then the contexts in parts too, and what one part does not support is judged by the
    next. The reason says so.

    Args:
        llm: The model: all that ``as_judge_model`` takes.
    """

    def __init__(self, llm: Any) -> None:
        self._llm = given_judge_model(llm)

    async def ascore(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Return the score.

        Args:
            user_input: The question.
            reference: The reference answer, or the texts of the reference contexts.
            retrieved_contexts: The retrieved texts, whole, whatever their length. One that is None or blank is left
                out.

        Returns:
            The value from 0 to 1. Without asking the model, 0 where nothing was retrieved, and None where no context
            has a text. ``details``: ``statements``, each with ``statement``, ``reason`` and ``attributed`` (0 or 1).

        Raises:
            JudgeError: The question or the reference is blank, or the model gives no usable answer.
        """
        question, answer = given_text("user_input", user_input), given_text("reference", reference)
        texts = given_contexts(retrieved_contexts)
        if not texts:
            return JudgeScore(0.0, "Nothing was retrieved.", 0.0, {"statements": []})
        if not any(texts):
            return JudgeScore(None, "No retrieved context has a text.", 0.0)
        statements, costs = list[Statement](), list[float | None]()
        try:
            requests = await self._judged(question, answer, list(filter(None, texts)), statements, costs)
        except JudgeError as problem:
            raise paid_error(problem, costs) from problem
        lines = [
            f"{'Covered' if one.attributed else 'Not covered'}: {one.statement} {one.reason}" for one in statements
        ]
        if requests > 1:
            lines.append(f"Too long for the model, it was judged in {requests} parts.")
        return JudgeScore(
            sum(one.attributed for one in statements) / len(statements),
            "\n".join(lines),
            total_cost(costs),
            {"statements": [one.model_dump() for one in statements]},
        )

    async def _judged(
        self,
        question: str,
        answer: str,
        texts: Sequence[str],
        statements: list[Statement],
        costs: list[float | None],
    ) -> int:
        """Add the statements of a reference answer and the costs, and return the number of requests."""
        prompt = load_prompt("context_recall")
        message = prompt.message(question=question, reference_answer=answer, context=texts)
        try:
            asked = await self._llm.aask(prompt.system, message, Statements)
        except (TooLongError, CutAnswerError) as problem:
            parts = halves_of(answer)
            is_cut = isinstance(problem, CutAnswerError)
            if len(parts) > 1 and (is_cut or len(answer) >= sum(map(len, texts))):
                costs.append(problem.cost)
                return sum([await self._judged(question, part, texts, statements, costs) for part in parts])
            halves = [texts] if is_cut else _halves_of_texts(texts)
            if len(halves) < 2:
                raise
            costs.append(problem.cost)
            return await self._judged_by_each(question, answer, halves, statements, costs)
        costs.append(asked.cost)
        statements += asked.values[0].statements
        return 1

    async def _judged_by_each(
        self,
        question: str,
        answer: str,
        parts: Sequence[Sequence[str]],
        statements: list[Statement],
        costs: list[float | None],
    ) -> int:
        """Do as ``_judged`` by parts of the contexts: what one does not support is judged by the next."""
        requests, left = 0, answer
        for number, texts in enumerate(parts, start=1):
            judged: list[Statement] = []
            requests += await self._judged(question, left, texts, judged, costs)
            missing = [one for one in judged if not one.attributed]
            if not missing or number == len(parts):
                statements += judged
                break
            statements += [one for one in judged if one.attributed]
            left = "\n".join(one.statement for one in missing)
        return requests

    def score(self, *, user_input: str, reference: str, retrieved_contexts: Sequence[str | None]) -> JudgeScore:
        """Do as ``ascore``, from synchronous code."""
        return run_sync(
            lambda: self.ascore(user_input=user_input, reference=reference, retrieved_contexts=retrieved_contexts)
        )


def _halves_of_texts(texts: Sequence[str]) -> list[Sequence[str]]:
    """Return two parts of a list of texts; of a single one its halves; the list alone where it cannot be cut."""
    if len(texts) > 1:
        middle = len(texts) // 2
        return [texts[:middle], texts[middle:]]
    return [[part] for part in halves_of(texts[0])]


def retrieval_steps(
    result: Mapping[str, Any], names: Mapping[str, str], retrieving: Set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the successful steps of a result with a name in ``retrieving``, by the ids that ``matches`` has for them.

    ``names`` has step names by tool name.
    """
    for index, step in enumerate(result.get("actual_steps") or ()):
        name, identifier = step.get("name"), step.get("id")
        if names.get(name, name) in retrieving and step.get("status") == "success":
            yield str(index if identifier is None else identifier), step


def context_texts(output: Any) -> list[str | None]:
    """Return the texts in an output such as ``[{"id": "doc-1", "text": "…"}]``, by rank; None for one without.

    A document's text is what ``document_text`` finds: ``text``, ``page_content``, or that of a serialised Document.

    Raises:
        JudgeError: The output is no JSON array of objects.
    """
    try:
        contexts = parse_json(output) if isinstance(output, str) else output
    except (ValueError, RecursionError):
        contexts = None
    if not isinstance(contexts, list) or not all(isinstance(context, dict) for context in contexts):
        raise JudgeError(
            "the step's output is no JSON array of objects with a text, so its contexts cannot be judged; if a "
            "LangChain retriever gave it, keep its documents: run with --retrieval-documents TOOL "
            "(config: capture: {retrieval_documents: [TOOL]})"
        )
    return [document_text(context) for context in contexts]


def reference_texts(result: Mapping[str, Any], retrieving: Set[str]) -> dict[str, str]:
    """Return the texts of reference contexts, joined by newlines, by the id of the actual step that matched them.

    Reference steps without texts, such as those with ids only, are left out.
    """
    texts: dict[str, str] = {}
    for group in result.get("reference_steps") or ():
        for step in group:
            if "matches" not in step or step.get("name") not in retrieving:
                continue
            try:
                known = [text for text in context_texts(step.get("output")) if text and text.strip()]
            except JudgeError:
                continue
            if known:
                texts[str(step["matches"])] = "\n".join(known)
    return texts
