"""A sequence of generators, by default in the order of the paper."""

from __future__ import annotations

from typing import Any, Self

from tamis.base import ColumnSelector
from tamis.columns.generators.formulas import Recipe
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator, RecipeBook
from tamis.columns.generators.pairs import Interactions
from tamis.columns.generators.sources import Originals, check_seed
from tamis.columns.generators.table import as_columns
from tamis.columns.generators.transforms import PrincipalComponents


class Chain(FeatureGenerator):
    """Blocks of features from several generators in sequence.

    After the last generator, the sequence restarts with the first, because the features accepted since may allow more
    candidates. The chain ends when no generator has any left.

    Parameters
    ----------
    *parts : FeatureGenerator
        The generators, in order. Each can be used in one chain only.
    random_state : int or None, default=None
        Seed for the generators that can be shuffled and have no seed.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis import AlphaInvesting
    >>> from tamis.columns.generators import Chain, Logs, Originals, Ratios
    >>> X = np.random.default_rng(0).lognormal(size=(300, 6))
    >>> stream = Chain(Originals(X), Logs(X), Ratios(X), random_state=0)
    >>> selector = AlphaInvesting(target_fdr=0.05).fit_stream(stream, X[:, 0] - 2 * np.log(X[:, 1]))
    >>> sorted(selector.selected_)  # x1 was offered before its logarithm
    ['log(x1)', 'x0', 'x1']
    """

    def __init__(self, *parts: FeatureGenerator, random_state: int | None = None) -> None:
        super().__init__()
        wrong = [part for part in parts if not isinstance(part, FeatureGenerator)]
        if wrong or not parts:
            raise TypeError(
                f"Chain takes generators, got {wrong[0]!r:.60}." if wrong else "Chain needs a generator."
            )
        if len({id(part) for part in parts}) < len(parts):
            raise ValueError("A generator occurs twice in the chain: create a second one.")
        self.parts, self.random_state = parts, check_seed(random_state)
        for part in parts:
            if random_state is not None and getattr(part, "random_state", 0) is None:
                part.random_state = self.random_state  # type: ignore[attr-defined]
        self.join(self.book, 0)
        self._at = 0

    @classmethod
    def published(
        cls, X: Any, n_components: int = 10, *, squares: bool = True, random_state: int | None = None
    ) -> Self:
        """Return the paper's stream: principal components, the columns, then products of selected columns and columns.

        Parameters
        ----------
        X : array-like, memory map, sparse matrix, frame or Columns, of shape (n_rows, n_columns)
        n_components : int, default=10
            Number of principal components; 0 for none. The paper uses 3 to 50.
        squares : bool, default=True
        random_state : int or None, default=None

        Returns
        -------
        Chain

        Examples
        --------
        >>> import numpy as np
        >>> from tamis.columns.generators import Chain
        >>> [part.stage() for part in Chain.published(np.eye(5), 2).parts]
        ['PrincipalComponents', 'Originals', 'Interactions']
        """
        table = as_columns(X)
        first = [PrincipalComponents(table, n_components)] if n_components else []
        products = Interactions(table, of="selected originals", squares=squares)
        return cls(*first, Originals(table), products, random_state=random_state)

    def next_features(self, selector: ColumnSelector, limit: int | None = None) -> Any:
        """Return names and a block of candidates, or None if there are no more.

        Parameters
        ----------
        selector : ColumnSelector
            The features accepted so far.
        limit : int, optional
            The most candidates to return.

        Returns
        -------
        (list of str, block) or None
        """
        for _ in range(len(self.parts) + 1):
            block = self.parts[self._at].next_features(selector, limit)
            if block is not None:
                return block
            self._at = (self._at + 1) % len(self.parts)
        return None

    def _draw(self, selector: ColumnSelector, width: int) -> CandidateBlock | None:
        raise NotImplementedError

    def store_accepted(self, selector: ColumnSelector) -> None:
        """Store the recipes of the accepted features of the last block.

        Parameters
        ----------
        selector : ColumnSelector
        """
        self.parts[self._at].store_accepted(selector)

    def discard_last_block(self) -> None:
        """Discard the last block, because it was not offered."""
        for part in self.parts:
            part.discard_last_block()

    def _find_recipe(self, name: str) -> Recipe | None:
        items = [recipe for part in self.parts if (recipe := part._find_recipe(name)) is not None]
        return items[0] if items else None

    def _column_names(self) -> list[str]:
        return next((names for part in self.parts if (names := part._column_names())), [])

    def stage(self) -> str:
        """Return the name of the current part, one word.

        Returns
        -------
        str
        """
        return self.parts[self._at].stage()

    def join(self, book: RecipeBook, place: int) -> None:
        """Become part of a chain.

        Parameters
        ----------
        book : RecipeBook
        place : int
        """
        super().join(book, place)
        for i, part in enumerate(self.parts):
            part.join(book, 100 * place + i)

    def position(self) -> Any:
        """Return the index of the current part, and the position of each part.

        Returns
        -------
        dict
        """
        return {"at": self._at, "parts": [part.position() for part in self.parts]}

    def seek(self, position: Any) -> None:
        """Return to an earlier position.

        Parameters
        ----------
        position : dict
        """
        self._at = int(position["at"])
        for part, own in zip(self.parts, position["parts"], strict=True):
            part.seek(own)

    def signature(self) -> dict[str, Any]:
        """Return values that distinguish this stream from another.

        Returns
        -------
        dict
        """
        return {"generator": "Chain", "parts": [part.signature() for part in self.parts]}
