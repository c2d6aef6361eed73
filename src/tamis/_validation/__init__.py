"""Validation of parameters and data: values, arrays, labels. `parameters` has the constraints declared by a class."""

from tamis._validation.arrays import (
    Array,
    Floats,
    Indices,
    Ints,
    Mask,
    Rows,
    are_categories,
    as_array,
    as_numbers,
    as_weights,
    columns_of,
    fill_masked,
    is_time,
    reject_masked,
    reject_non_number,
    repeated_rows,
    warn_of_rounding,
)
from tamis._validation.labels import (
    as_classes,
    as_column,
    as_target,
    check_label,
    encode_labels,
    plain_numbers,
    reject_missing,
)
from tamis._validation.rows import (
    as_rows,
    checked,
    has_rows,
    reject_non_array,
    reject_nonfinite,
    validated,
    with_accepted_names,
)
from tamis._validation.table import Table, as_table, first_value
from tamis._validation.values import (
    as_list,
    check_choice,
    check_number,
    is_integer,
    is_missing,
    safe_repr,
    short_repr,
)
