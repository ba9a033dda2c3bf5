"""Types of vertex ids: which columns hold ids, which type a graph's ids have, and how columns are
converted to it.

Ids are integers, strings, or 16 bytes each: UUIDs, and binary of that size. Whole numbers in floats
(pandas makes these of integers beside a null) and in decimals are converted to 64-bit integers. A
conversion that would lose anything is refused, with a line that names the cast.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError
from .arrow import as_arrow, as_numpy, numpy_type

BYTES_16 = pa.binary(16)
UUID_TYPE = pa.uuid()

Id = int | str | bytes
"""A value of a graph's ids; for ids of 16 bytes, UUIDs too, the bytes."""


def is_string(id_type: pa.DataType) -> bool:
    return (
        pa.types.is_string(id_type)
        or pa.types.is_large_string(id_type)
        or pa.types.is_string_view(id_type)
    )


def is_bytes(id_type: pa.DataType) -> bool:
    """Return whether ids are 16 bytes each: UUIDs, and binary of that size.

    >>> is_bytes(pa.uuid()), is_bytes(pa.binary(16)), is_bytes(pa.binary(8)), is_bytes(pa.int64())
    (True, True, False, False)
    """
    return id_type in (BYTES_16, UUID_TYPE)


def storage_type(id_type: pa.DataType) -> pa.DataType:
    """Return the type that Arrow's functions accept: for UUIDs, the type of their bytes."""
    return BYTES_16 if id_type == UUID_TYPE else id_type


def in_range(value: int, id_type: pa.DataType) -> bool:
    """Return whether an integer type can hold ``value``.

    >>> in_range(255, pa.uint8()), in_range(-1, pa.uint8()), in_range(128, pa.int8())
    (True, False, False)
    """
    if pa.types.is_signed_integer(id_type):
        half = 1 << (id_type.bit_width - 1)
        return -half <= value < half
    return 0 <= value < 1 << id_type.bit_width


def stored(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return ids in ``storage_type``, as one array."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks() if ids.num_chunks != 1 else ids.chunk(0)
    return ids.storage if isinstance(ids, pa.ExtensionArray) else ids


def type_name(id_type: pa.DataType) -> str:
    """Return the name of a type of ids, which ``type_named`` parses.

    >>> type_name(pa.uuid()), type_name(pa.binary(16)), type_name(pa.int64())
    ('uuid', 'fixed_size_binary[16]', 'int64')
    """
    return "uuid" if id_type == UUID_TYPE else str(id_type)


def type_named(name: str) -> pa.DataType:
    """
    >>> [type_named(type_name(kind)) == kind for kind in (pa.uuid(), pa.binary(16), pa.string())]
    [True, True, True]
    """
    sixteen = {type_name(kind): kind for kind in (BYTES_16, UUID_TYPE)}
    return sixteen[name] if name in sixteen else pa.type_for_alias(name)


def shown_id(value: Any) -> Any:
    """Return an id as JSON and messages show it: 16 bytes as the text of a UUID.

    >>> shown_id(bytes(16)), shown_id(UUID(int=1)), shown_id(7), shown_id("a")
    ('00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000001', 7, 'a')
    """
    if isinstance(value, bytes) and len(value) == 16:
        value = UUID(bytes=value)
    return str(value) if isinstance(value, UUID) else value


def told_id(value: object, id_type: pa.DataType) -> Id | None:
    """Return the id that ``shown_id`` has turned into this value; None if there is none.

    >>> told_id(7, pa.int64()), told_id("7", pa.int64()), told_id("7", pa.uuid())
    (7, None, None)
    """
    if is_bytes(id_type):
        try:
            return UUID(value).bytes if isinstance(value, str) else None
        except ValueError:
            return None
    if isinstance(value, str if is_string(id_type) else int) and not isinstance(value, bool):
        assert isinstance(value, (str, int))
        return value
    return None


def column_type(where: str, given: pa.DataType, is_uuid: bool, column: str) -> pa.DataType:
    """Return the type of ids in a column, before the other columns are known.

    where: the column, for messages. is_uuid: whether Parquet marks the column as UUIDs. Floats and
    decimals are returned as they are. Raises InputError for a column that holds no ids.
    """
    if pa.types.is_dictionary(given):
        given = given.value_type
    if is_uuid or given == UUID_TYPE:
        return UUID_TYPE
    if _is_any_binary(given) or given == BYTES_16:
        return BYTES_16
    if pa.types.is_integer(given) or is_string(given) or _is_number(given):
        return given
    if pa.types.is_null(given):
        raise InputError(f"{where} holds only nulls: every row needs both ids; leave such rows out")
    raise InputError(
        f"{where} is {given}, but ids must be integers, strings or UUIDs; {cast(column)}"
    )


def cast(column: str, kind: str = "VARCHAR", pandas: str = "str") -> str:
    """Return advice on how to cast a column to another type."""
    return (
        f"cast it: in DuckDB with SELECT * REPLACE (CAST({column} AS {kind}) AS {column}), in "
        f"pandas with df[{column!r}].astype({pandas!r})"
    )


def common_type(types: dict[pa.DataType, str]) -> pa.DataType:
    """Return the one type that holds every id. Raises InputError, which names two columns, if their
    ids cannot be compared.

    types: from ``column_type``, each with a column that has it.
    """
    kinds = list(types)
    groups = (is_string, is_bytes, lambda kind: not is_string(kind) and not is_bytes(kind))
    first_kinds = [next((kind for kind in kinds if fits(kind)), None) for fits in groups]
    different = [kind for kind in first_kinds if kind is not None]
    if len(different) > 1:
        first, second = different[:2]
        raise InputError(
            f"{types[first]} is {type_name(first)} but {types[second]} is {type_name(second)}: ids "
            "of both columns must have one type: cast both to one, in DuckDB with CAST(... AS "
            "VARCHAR), in pandas with astype('str')"
        )
    if is_string(kinds[0]):
        return pa.large_string() if pa.large_string() in kinds else pa.string()
    if is_bytes(kinds[0]):
        return UUID_TYPE if UUID_TYPE in kinds else BYTES_16
    signed = [kind.bit_width for kind in kinds if pa.types.is_signed_integer(kind)]
    unsigned = [kind.bit_width for kind in kinds if pa.types.is_unsigned_integer(kind)]
    numbers = [kind for kind in kinds if _is_number(kind)]
    if numbers and not signed and 64 in unsigned:
        return pa.uint64()
    if numbers:
        signed.append(64)
    if not signed:
        return _integer("uint", max(unsigned))
    width = max(signed + [2 * bits for bits in unsigned])
    if width > 64:
        raise InputError(
            f"{types[pa.uint64()]} is uint64 but another column is signed: no 64-bit type holds "
            "both; convert one of them, in DuckDB with CAST(... AS BIGINT)"
        )
    return _integer("int", width)


def converted_note(types: dict[str, set[pa.DataType]], id_type: pa.DataType) -> tuple[str, ...]:
    """Return a note for the user if results have integers for ids that are floats or decimals in
    the input. types: by column.
    """
    numbers = {
        column: ", ".join(sorted(str(kind) for kind in kinds if _is_number(kind)))
        for column, kinds in types.items()
    }
    told = [f"{column!r} is {kinds}" for column, kinds in numbers.items() if kinds]
    if not told:
        return ()
    return (f"column {' and '.join(told)}: results name ids as {id_type}",)


def is_converted(given: pa.DataType) -> bool:
    """Return whether a column of this type is converted when it is read, which needs memory for two
    copies.
    """
    if pa.types.is_dictionary(given):
        given = given.value_type
    return _is_number(given) or _is_any_binary(given)


def as_ids(column: pa.Array, id_type: pa.DataType, where: str, name: str) -> pa.Array:
    """Return a column without nulls as integers or 16 bytes. where: for messages. name: of the
    column.

    Raises InputError if a conversion would lose anything.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = stored(column)
    wanted, given = storage_type(id_type), column.type
    if given == wanted:
        return column
    if pa.types.is_floating(given):
        return _from_floats(column, wanted, where, name)
    if pa.types.is_decimal(given):
        return _from_decimals(column, wanted, where, name)
    if wanted == BYTES_16 and _is_any_binary(given):
        try:
            return column.cast(wanted)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{where} holds binary values that are not 16 bytes long: ids must be integers, "
                f"strings or UUIDs; {cast(name)}"
            ) from error
    return column.cast(wanted)


def _from_floats(column: pa.Array, wanted: pa.DataType, where: str, name: str) -> pa.Array:
    values: NDArray = as_numpy(column)
    if np.isnan(values).any():
        raise InputError(f"{where} holds NaN: every row needs both ids; leave such rows out")
    exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)  # greater neighbours round to the same float
    least = 0.0 if pa.types.is_unsigned_integer(wanted) else -exact
    with np.errstate(invalid="ignore"):
        fits = (values < exact) & (values > least if least else values >= 0)
        fits &= np.floor(values) == values
    if not fits.all():
        wrong = values[int(np.argmin(fits))]
        raise InputError(
            f"{where} is {column.type} and holds {wrong!s}: ids in floats must be whole numbers "
            f"below {exact:,.0f}{'' if least else ', from 0 on'}; {cast(name)}"
        )
    return as_arrow(values.astype(numpy_type(wanted)))


def _from_decimals(column: pa.Array, wanted: pa.DataType, where: str, name: str) -> pa.Array:
    given = column.type
    if given.bit_width < 128:  # Arrow fails to cast these to a type of more digits
        column = column.cast(pa.decimal128(38, given.scale))
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{where} is {given} and holds a value that is not a 64-bit whole number, which ids in "
            f"decimals must be; {cast(name)}"
        ) from error


def _is_number(kind: pa.DataType) -> bool:
    """Return whether ids of this type are converted to integers: floats and decimals."""
    return pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_any_binary(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view()


def _integer(kind: str, bits: int) -> pa.DataType:
    return pa.type_for_alias(f"{kind}{bits}")
