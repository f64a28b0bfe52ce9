"""What a block is filed under: owner, instance and category, as one small number."""

from __future__ import annotations

from dataclasses import dataclass

from etmem.analysis.scopes import Instance
from etmem.model.words import HOST, PROFILER, Category, is_counted


@dataclass(frozen=True)
class Key:
    owner: str
    instance: Instance | None
    category: Category

    @property
    def counted(self) -> bool:
        return is_counted(self.owner)


class KeyBook:
    """Numbers keys in the order in which they come."""

    def __init__(self) -> None:
        self._codes: dict[Key, int] = {}

    def code(self, key: Key) -> int:
        return self._codes.setdefault(key, len(self._codes))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._codes)


_CATEGORIES = {category.value: category for category in Category}

OTHER = Key(HOST, None, Category.OTHER)
INPUTS_OUTPUTS = Key(HOST, None, Category.INPUTS_OUTPUTS)
OWN = Key(PROFILER, None, Category.OTHER)


def as_category(word: str, otherwise: Category) -> Category:
    """The category of a word in the trace, which may be any text."""
    return _CATEGORIES.get(word, otherwise)
