"""Streams of generated features, which may depend on the features accepted so far.

Zhou, Foster, Stine, Ungar: Streaming Feature Selection using Alpha-investing, KDD 2005, Sections 2 and 4.2. Covered:
the order of Table 7 (principal components, columns, products of selected columns with columns, each pair once), and
further transformations of one or two features.

Deviation: the paper multiplies "the features selected from the first two blocks", including components;
``Chain.published`` takes the selected columns only, ``Interactions(of="selected")`` every selected feature.
"""

from tamis.columns.generators.chain import Chain
from tamis.columns.generators.explore import Exploration, Progress, explore
from tamis.columns.generators.formulas import (
    Column,
    Component,
    Log,
    Power,
    Product,
    Projection,
    Ratio,
    Recipe,
)
from tamis.columns.generators.generator import CandidateBlock, FeatureGenerator, RecipeBook
from tamis.columns.generators.pairs import Interactions, Ratios
from tamis.columns.generators.recipes import Recipes
from tamis.columns.generators.sources import FromIterable, Originals
from tamis.columns.generators.table import Columns
from tamis.columns.generators.transforms import Logs, Powers, PrincipalComponents

__all__ = [
    "CandidateBlock", "Chain", "Column", "Columns", "Component", "Exploration", "FeatureGenerator", "FromIterable",
    "Interactions", "Log", "Logs", "Originals", "Power", "Powers", "PrincipalComponents", "Product", "Progress",
    "Projection", "Ratio", "Ratios", "Recipe", "RecipeBook", "Recipes", "explore",
]  # fmt: skip
