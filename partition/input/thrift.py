"""A reader of structs in Thrift's compact protocol, the form of Parquet's footers and page
headers.
"""

from __future__ import annotations

from typing import Any

Fields = dict[int, Any]
"""The fields of a struct, by their numbers in parquet.thrift."""


def read_struct(data: bytes, at: int) -> tuple[Fields, int]:
    """Return a struct's fields by number, and the position of its end.

    Raises IndexError if the data end within the struct, ValueError if they are no struct.
    """
    fields, number = {}, 0
    while head := data[at]:
        number += head >> 4
        at += 1
        if head < 16:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, head & 15)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 8:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind in (9, 10):
        return _list(data, at)
    if kind == 12:
        return read_struct(data, at)
    if kind in (1, 2):  # true and false in a struct; in a list, a byte each (``_list``)
        return kind == 1, at
    if kind in (3, 7):
        end = at + (1 if kind == 3 else 8)
        return data[at:end], end
    raise ValueError(f"no such type: {kind}")  # also for maps, which footers do not have


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    length, kind = data[at] >> 4, data[at] & 15
    at += 1
    if length == 15:
        length, at = _varint(data, at)
    if length > len(data):
        raise ValueError(f"{length} values in {len(data)} bytes")
    if kind in (1, 2):
        return list(data[at : at + length]), at + length
    values = []
    for _ in range(length):
        value, at = _value(data, at, kind)
        values.append(value)
    return values, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while (byte := data[at]) > 127:
        number |= (byte & 127) << shift
        shift += 7
        at += 1
    return number | byte << shift, at + 1
