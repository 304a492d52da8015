"""A bound on the money of a run: what a request can cost at most is reserved before it is sent."""

import asyncio
import math
import threading
from dataclasses import dataclass
from typing import Protocol

from graphrag_eval_lc.prices import dollars

_ROUNDING = 1e-12  # USD; sums of the same amounts in another order differ less


class CostLimitError(Exception):
    """A request is not sent, as the limit of costs does not allow it; the text says why."""


class Account(Protocol):
    """Where requests reserve what they can cost: a limit of this process, or the way to that of another one."""

    async def areserve(self, amount: float) -> "Reservation":
        """Reserve USD; wait where they may fit once others have ended.

        Raises:
            CostLimitError: They do not fit.
        """

    def reserve(self, amount: float) -> "Reservation | None":
        """Reserve USD without waiting for others; None where they may fit once others have ended.

        Raises:
            CostLimitError: They do not fit.
        """

    def settled(self, reservation: "Reservation", cost: float | None) -> None:
        """Take note of what a request did cost in USD; None, where nobody knows, counts as the most."""


class CostLimit:
    """USD that a run may spend at most, on all requests whose cost can be bounded before they are sent.

    A request reserves the most that it can cost, waits while only requests in flight stand in its way, and settles
    what it did cost. The first request that does not fit, with nothing in flight, closes the limit: nothing that
    reserves is sent any more, however cheap, so that it is not the dear questions alone that stay unjudged.

    It may be used from several threads and event loops.

    Args:
        most: USD, greater than 0; None: there is no limit, and all is only counted.
        spent: USD that are spent already.

    Attributes:
        most: USD; None for no limit.
        spent: USD that are spent.
        assumed: Those of the spent ones that nobody reported: of requests without an answer, the most that they can
            have cost.
        message: Why nothing more is sent; None while the limit is open.

    Example:
        >>> async def ask(limit):
        ...     reservation = await limit.areserve(0.75)
        ...     reservation.settle(0.5)
        ...     return limit.spent, limit.held
        >>> asyncio.run(ask(CostLimit(1.0)))
        (0.5, 0.0)
    """

    def __init__(self, most: float | None = None, spent: float = 0.0) -> None:
        self.most = most
        self.spent = spent
        self.assumed = 0.0
        self.message: str | None = None
        self._lock = threading.Lock()
        self._in_flight: set[Reservation] = set()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def held(self) -> float:
        """USD that are reserved by requests in flight."""
        return math.fsum(reservation.held for reservation in tuple(self._in_flight))

    async def areserve(self, amount: float | None, *, unbounded: str = "", is_alone: bool = False) -> "Reservation":
        """Reserve what a request can cost at most; wait where it may fit once others have ended.

        Args:
            amount: USD; None where nothing bounds it, which a limit does not allow.
            unbounded: Why nothing bounds it.
            is_alone: Whether all that is left is held, so that no other request is sent until this one has ended.

        Raises:
            CostLimitError: It does not fit; now and from here on nothing does.
        """
        while True:
            with self._lock:
                reservation = self._reserved(amount, unbounded, is_alone=is_alone)
                if reservation is not None:
                    return reservation
                loop = asyncio.get_running_loop()
                turn = loop.create_future()
                self._waiting.append((loop, turn))
            await turn

    def reserve(self, amount: float) -> "Reservation | None":
        """Reserve what a request can cost at most, without waiting; None where it may fit once others have ended.

        Raises:
            CostLimitError: It does not fit; now and from here on nothing does.
        """
        with self._lock:
            return self._reserved(amount, "")

    def spend(self, cost: float) -> None:
        """Count USD that were spent without a reservation."""
        with self._lock:
            self.spent += cost

    def close(self, message: str) -> None:
        """Send nothing more, for the reason that ``message`` gives; the first reason stays."""
        with self._lock:
            self._close(message)

    def settled(self, reservation: "Reservation", cost: float | None) -> None:
        """Count what a request did cost; see ``Reservation.settle``."""
        with self._lock:
            self._in_flight.discard(reservation)
            if cost is None:
                self.assumed += reservation.amount
            self.spent += reservation.amount if cost is None else cost
            self._wake()

    def _reserved(self, amount: float | None, unbounded: str, *, is_alone: bool = False) -> "Reservation | None":
        """Return a reservation; None where it may fit once others have ended."""
        if self.most is None:
            if self.message is not None:
                raise CostLimitError(self.message)
            return Reservation(self, 0.0, 0.0)
        held = self.held
        if amount is None:
            self._close(f"a budget of money cannot be kept: {unbounded}")
        elif self.message is None and self.spent + held + amount > self.most + _ROUNDING:
            if self._in_flight:
                return None
            self._close(self._refusal(amount))
        if self.message is not None or amount is None:
            raise CostLimitError(self.message)
        reservation = Reservation(self, amount, max(amount, self.most - self.spent - held) if is_alone else amount)
        self._in_flight.add(reservation)
        return reservation

    def _refusal(self, amount: float) -> str:
        spent = f"{dollars(self.spent)} are spent"
        if self.assumed:
            spent += f" ({dollars(self.assumed)} of them at most, on requests without an answer)"
        return (
            f"another request may pass the budget of {dollars(self.most or 0.0)}: {spent}, and it can cost "
            f"{dollars(amount)}"
        )

    def _close(self, message: str) -> None:
        if self.message is None:
            self.message = message
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for loop, turn in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_end, turn)


@dataclass(slots=True, eq=False)
class Reservation:
    """What one request may cost, until it is settled.

    Attributes:
        account: Where it was made.
        amount: USD, at most.
        held: USD that nobody else can have meanwhile; at least the amount.
    """

    account: Account
    amount: float
    held: float
    _is_settled: bool = False

    def settle(self, cost: float | None) -> None:
        """Say what the request did cost, in USD; None, where nobody knows, counts as the most. Only once counts."""
        if not self._is_settled:
            self._is_settled = True
            self.account.settled(self, cost)


def _end(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)
