"""Inputs of `tamis columns`: the table as numeric columns, its target, the selector, and the candidates."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tamis.catalog import find
from tamis.cli.failure import MisuseError
from tamis.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.cli.train import Table

_SPENDING = (
    "alpha-investing", "information-investing", "alpha-spending", "lond", "e-lond", "closed-e-lond",
    "e-lord", "e-saffron", "score", "lord++", "saffron", "addis",
)  # fmt: skip
_PENALISED = ("aic", "bic", "ric", "stepwise-aic", "stepwise-bic", "stepwise-ric")
_CLASSES = ("osfs", "fast-osfs", "saola", "ofs-density", "ofs-a3m", "gfsfs")
_KINDS = {
    **dict.fromkeys(_SPENDING, "spending"),
    **{name: "stepwise" if name.startswith("stepwise-") else "penalised" for name in _PENALISED},
    "grafting": "lasso",
    **dict.fromkeys(_CLASSES, "classes"),
}
RULES = tuple(_KINDS)
_MODELS = ("linear", "logistic", "multinomial", "poisson")
_MOST_CLASSES = 20  # of a multinomial model that is chosen by the label
MOST_TEXTS = 100  # different ones in a column
_FEWEST = 3  # rows


@dataclass(frozen=True)
class Rule:
    """A rule, by its name on the command line.

    Attributes
    ----------
    name : str
    kind : {"spending", "penalised", "stepwise", "lasso", "classes"}
    """

    name: str
    kind: str

    @property
    def has_groups(self) -> bool:
        """Whether it decides on groups of features."""
        return self.kind == "spending" or self.name == "gfsfs"

    def make(self, model: str, **parameters: Any) -> Any:
        """Return the selector; parameters that are None, or that it does not have, are ignored."""
        if self.kind == "spending":
            key, own = "alpha-investing", {"model": model, "rule": self.name}
        elif self.kind == "classes":
            # The default groups of GFSFS are the blocks of offers, which have no meaning here.
            key, own = self.name, {"groups": parameters.pop("groups", None)} if self.has_groups else {}
        elif self.kind == "lasso":
            key, own = self.name, {"model": model}
        else:
            key = "stepwise" if self.kind == "stepwise" else "penalised"
            own = {"model": model, "criterion": self.name.removeprefix("stepwise-")}
        made = find(key, "columns").load()
        options = {name: value for name, value in parameters.items() if value is not None}
        known = made().get_params()
        return made(**own, **{name: value for name, value in options.items() if name in known})


def find_rule(name: str) -> Rule:
    """Return the rule of a name, or suggest the nearest."""
    known = name.lower()
    if known not in RULES:
        hint = did_you_mean(known, RULES)
        raise MisuseError(f"--rule {name} is not a rule{hint} Known: {', '.join(RULES)}.")
    return Rule(known, _KINDS[known])


@dataclass
class CandidateOptions:
    """The candidates that are generated from the columns, and their order.

    Parameters
    ----------
    pca : N
        Offer this many principal components first.
    powers : bool
        Offer squares and cubes of the columns.
    logs : bool
        Offer logarithms of the columns.
    interactions : bool
        Offer products of accepted features and columns.
    ratios : bool
        Offer ratios of accepted features and columns.
    shuffle : bool
        Offer the features in random order, each kind separately.
    seed : N
        Seed of the random order, and of a randomised rule.
    """

    panel: ClassVar[str] = "Candidates"

    pca: Annotated[int | None, typer.Option(min=1)] = None
    powers: bool = False
    logs: bool = False
    interactions: bool = False
    ratios: bool = False
    shuffle: bool = False
    seed: Annotated[int, typer.Option(min=0)] = 0

    def names(self) -> list[str]:
        """Return the classes of generators, in the order of their candidates."""
        wanted = {
            "PrincipalComponents": self.pca, "Originals": True, "Powers": self.powers, "Logs": self.logs,
            "Interactions": self.interactions, "Ratios": self.ratios,
        }  # fmt: skip
        return [name for name, is_wanted in wanted.items() if is_wanted]

    def stream(self, columns: Any) -> Any:
        """Return the candidates."""
        import tamis.columns.generators as kinds

        parts = [
            getattr(kinds, name)(columns, *([self.pca] if name == "PrincipalComponents" else []))
            for name in self.names()
        ]
        return kinds.Chain(*parts, random_state=self.seed if self.shuffle else None)

    def expected(self, n_columns: int, n_parents: int) -> int:
        """Return the number of candidates, if no further column or component is accepted."""
        pairs = n_parents * n_columns - n_parents * (n_parents - 1) // 2
        once = 1 + 2 * self.powers + self.logs
        return (self.pca or 0) + n_columns * once + pairs * (self.interactions + 2 * self.ratios)


class ColumnTask:
    """A table of numeric columns, and its target.

    Parameters
    ----------
    table : Table
        Each text column is one-hot encoded; two values become a single column.
    label : str
        Name of the target.
    rule : Rule
    model : str or None
        By default inferred from the target.

    Attributes
    ----------
    columns : tamis.columns.generators.Columns
    y : ndarray of shape (n_rows,)
    texts : dict of str to list of str
        Text columns, and the columns encoded from each.
    model, guess : str
        The fitted model ("" for a rule without one), and the reason if it was inferred.
    """

    def __init__(self, table: Table, label: str, rule: Rule, model: str | None) -> None:
        from tamis.columns.generators import Columns

        self.label, self.rule = label, rule
        self.y = table.y
        self.n_given = int(table.X.shape[1])
        self._check_target()
        self.model, self.guess = self._model(model)
        self.texts: dict[str, list[str]] = {}
        X, names = self._numbers(table)
        self.columns = Columns(X, names)

    # -- the target ----------------------------------------------------------------------------------------

    def _check_target(self) -> None:
        import numpy as np

        if len(self.y) < _FEWEST:
            raise DataError(
                f"{len(self.y)} row{'s are' if len(self.y) > 1 else ' is'} too few to test a column:"
                f" give {_FEWEST} or more."
            )
        self.labels = np.unique(self.y)
        if len(self.labels) == 1:
            raise DataError(
                f"All {len(self.y):,} rows have the label {self.labels[0]!s}, so there is"
                " nothing to explain: check --label."
            )

    def _is_numeric(self) -> bool:
        return bool(self.y.dtype.kind in "fiub")

    def _model(self, model: str | None) -> tuple[str, str]:
        """Return the model and the reason for it."""
        if model == "poisson" and self.rule.kind == "lasso":
            raise MisuseError(f"--rule {self.rule.name} has no model for counts: choose --model linear.")
        if model is not None and model not in _MODELS:
            hint = did_you_mean(model, _MODELS)
            raise MisuseError(f"--model {model} is not a model{hint} Known: {', '.join(_MODELS)}.")
        if self.rule.kind == "classes":
            return "", self._for_classes(model)
        if model is not None:
            self._check_model(model)
            return model, ""
        if len(self.labels) == 2:
            return "logistic", f"for the two labels {self.labels[0]!s} and {self.labels[1]!s}"
        if self._is_numeric():
            return "linear", f"for a numeric label of {len(self.labels):,} values"
        if self.rule.kind == "spending" and len(self.labels) <= _MOST_CLASSES:
            return "multinomial", f"for {len(self.labels)} different labels"
        self._raise_too_many_classes()
        raise AssertionError

    def _check_model(self, model: str) -> None:
        if model == "logistic" and len(self.labels) > 2:
            self._raise_too_many_classes()
        if model == "multinomial" and self.rule.kind != "spending":
            raise MisuseError(f"--rule {self.rule.name} has no multinomial model: choose a spending rule.")
        if model not in ("logistic", "multinomial") and not self._is_numeric():
            raise DataError(
                f"--model {model} needs a numeric label, but {self.label!r} contains {str(self.labels[0])!r}:"
                " choose --model logistic."
            )
        if model == "poisson" and self.y.min() < 0:
            raise DataError(
                f"--model poisson needs counts, but {self.label!r} contains {self.y.min():g}: choose --model linear."
            )

    def _raise_too_many_classes(self) -> None:
        others = f"choose a rule for any number of classes ({', '.join(_CLASSES)}), or keep the rows of two"
        if self.rule.kind == "spending":
            others = "choose --model multinomial"
        advice = "choose --model linear" if self._is_numeric() else others
        raise DataError(
            f"{self.label!r} has {len(self.labels):,} different labels, but a logistic model has two: {advice}."
        )

    def _for_classes(self, model: str | None) -> str:
        if model is not None:
            raise MisuseError(f"--rule {self.rule.name} fits no model: omit --model.")
        fractions = self.y.dtype.kind == "f" and (self.y != self.y.round()).any()
        if fractions or (self._is_numeric() and len(self.labels) > max(20, len(self.y) // 2)):
            raise DataError(
                f"--rule {self.rule.name} separates classes, but {self.label!r} has {len(self.labels):,} different"
                " numbers: choose a rule that fits a model, such as alpha-investing."
            )
        return f"{len(self.labels)} classes"

    # -- the columns ---------------------------------------------------------------------------------------

    def _numbers(self, table: Table) -> tuple[Any, list[str] | None]:
        """Return the table with text columns encoded as indicator columns."""
        import numpy as np
        import scipy.sparse as sp

        if sp.issparse(table.X):
            return table.X.tocsc(), table.names
        given = table.names or [f"x{j}" for j in range(table.X.shape[1])]
        if not table.categories:
            return np.asfortranarray(table.X), given
        made: list[NDArray[Any]] = []
        names: list[str] = []
        for j, name in enumerate(given):
            if (values := table.categories.get(name)) is None:
                made.append(table.X[:, j])
                names.append(name)
                continue
            for value, code in self._list_texts(name, values):
                made.append((table.X[:, j] == code).astype(np.float64))
                names.append(f"{name}={value}")
                self.texts.setdefault(name, []).append(names[-1])
        return np.array(made).T, names

    def _list_texts(self, name: str, values: list[Any]) -> list[tuple[Any, int]]:
        """Return the texts of a column that are encoded as columns, with their codes."""
        known = sorted((str(value), code) for code, value in enumerate(values) if value is not None)
        if len(known) > MOST_TEXTS:
            raise DataError(
                f"Column {name!r} contains text with {len(known):,} distinct values such as {known[0][0]!r}: exclude it"
                f" with --drop {shlex.quote(name)}."
            )
        return known[1:] if len(known) == 2 and len(known) == len(values) else known
