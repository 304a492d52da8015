"""Lists of which little is kept in memory: each item is made when it is looked at."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Self, TypeVar, overload

Item = TypeVar("Item", covariant=True)


class MadeList(Sequence[Item]):
    """A sequence whose items are made when they are looked at; it equals a list of the same items."""

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def chosen(self, places: Iterable[int]) -> Self:
        """Return the items at some places of this list, from 0."""

    @abstractmethod
    def _made(self, place: int) -> Item:
        """Return the item at a place, which may be counted from the end."""

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> Self: ...

    def __getitem__(self, place: int | slice) -> Item | Self:
        return self.chosen(range(*place.indices(len(self)))) if isinstance(place, slice) else self._made(place)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(one == another for one, another in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(list(self))
