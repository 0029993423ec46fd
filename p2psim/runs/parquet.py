"""Parquet files: how their columns are packed, by several threads at once.

A writer of pyarrow packs in one thread. So each row group is packed in memory, as a file of its own, and the groups of
these files are put together with one list of them, in which their places are those in the whole file. The bytes are
those that one writer would give.

The list is the structure ``FileMetaData`` of the Parquet format (https://github.com/apache/parquet-format), in Thrift's
compact protocol: a field begins with its kind and by how much its number is above that of the field before; integers
have seven bits a byte, the lowest first, and signed ones their sign as the lowest bit.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Rows of a row group; smaller groups are read many times slower.
ROW_GROUP = 131_072

#: Columns of numbers that grow from row to row: a dictionary of them would be as long as they are.
_COUNTS = ("seq", "cause", "step")

_MAGIC = b"PAR1"
#: Bytes after the list: its length, and `_MAGIC`.
_TAIL = 8

#: Kinds of values. What is true or false is said by the kind alone; the integers between `_BYTE` and `_BINARY` are
#: written alike.
_FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _STRUCT = 2, 3, 7, 8, 9, 12

#: A structure: kind and value of each field, by its number. Integers are kept as they are written.
_Fields = dict[int, tuple[int, Any]]

#: Fields of ``FileMetaData``, and of the structures in it.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_PLACE, _ORDINAL, _COLUMN_DATA = 1, 5, 7, 3
#: Of ``ColumnChunk``, and of ``ColumnMetaData`` in it: all fields that are places in the file.
_COLUMN_PLACES, _PAGE_PLACES = (2, 4, 6), (9, 10, 11, 14)


def packing(schema: pa.Schema, alike: Collection[str]) -> dict[str, Any]:
    """How columns are packed, as options of pyarrow; values of those that are `alike` follow soon after themselves."""
    words = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    numbers = [field for field in schema if field.name not in words]
    floats = [one.name for one in numbers if pa.types.is_floating(one.type) and one.name not in alike]
    counts = [one.name for one in numbers if one.name in _COUNTS]
    ways = dict.fromkeys(floats, "BYTE_STREAM_SPLIT") | dict.fromkeys(counts, "DELTA_BINARY_PACKED")
    ways |= {one.name: "PLAIN" for one in numbers if one.name in alike}
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name not in ways],
        "column_encoding": ways,
        "write_page_checksum": True,
        # Nearly all words are in every group: to look for the least and the greatest costs as much as writing them.
        "write_statistics": [one.name for one in numbers],
        # A page is a column of a group: each page has a compressor of its own.
        "write_batch_size": ROW_GROUP,
        **({"max_rows_per_page": ROW_GROUP} if _LIMITS_PAGES else {}),
    }


#: Earlier versions of pyarrow limit the bytes of a page alone.
_LIMITS_PAGES = "max_rows_per_page" in signature(pq.ParquetWriter).parameters


def write_table(
    path: Path,
    schema: pa.Schema,
    groups: Iterable[Callable[[], pa.Table]],
    options: Mapping[str, Any],
    threads: int = 1,
) -> None:
    """Write a file.

    Parameters
    ----------
    path : Path
    schema : Schema
    groups : iterable of callable
        At least one; what each gives becomes a row group. They are taken in this thread, a few ahead of those that are
        written, and called by those that pack.
    options : mapping
        How to pack them, as arguments of `pyarrow.parquet.ParquetWriter`.
    threads : int
        That pack.
    """
    packing, packed = ThreadPoolExecutor(threads), deque[Future[pa.Buffer]]()
    with packing, open(path, "wb") as stream:
        stream.write(_MAGIC)
        whole: _Fields = {}

        def take() -> None:
            content = memoryview(packed.popleft().result())
            end = len(content) - _TAIL - int.from_bytes(content[-_TAIL:-4], "little")
            metadata = _Reader(bytes(content[end:-_TAIL])).fields()
            _move(metadata, stream.tell() - len(_MAGIC), len(whole[_GROUPS][1][1]) if whole else 0)
            if whole:
                # As it is written, an integer that is not negative is twice itself: so is a sum.
                whole[_ROWS] = (whole[_ROWS][0], whole[_ROWS][1] + metadata[_ROWS][1])
                whole[_GROUPS][1][1].extend(metadata[_GROUPS][1][1])
            else:
                whole.update(metadata)
            stream.write(content[len(_MAGIC) : end])

        for group in groups:
            packed.append(packing.submit(_packed, group, schema, options))
            if len(packed) > threads:
                take()
        while packed:
            take()
        listing = bytearray()
        _write(listing, _STRUCT, whole)
        stream.write(listing + len(listing).to_bytes(4, "little") + _MAGIC)


def _packed(group: Callable[[], pa.Table], schema: pa.Schema, options: Mapping[str, Any]) -> pa.Buffer:
    """A file in memory that has one group."""
    sink, table = pa.BufferOutputStream(), group()
    with pq.ParquetWriter(sink, schema, **options) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
    return sink.getvalue()


def _move(metadata: _Fields, by: int, first: int) -> None:
    """Have the groups of a file begin so many bytes further on, and be counted from a number."""

    def moved(fields: _Fields, number: int) -> None:
        # What is nowhere has the place 0.
        if number in fields and fields[number][1]:
            fields[number] = (fields[number][0], fields[number][1] + 2 * by)

    for ordinal, group in enumerate(metadata[_GROUPS][1][1], start=first):
        moved(group, _GROUP_PLACE)
        if _ORDINAL in group:
            group[_ORDINAL] = (group[_ORDINAL][0], 2 * ordinal)
        for column in group[_COLUMNS][1][1]:
            for number in _COLUMN_PLACES:
                moved(column, number)
            for number in _PAGE_PLACES:
                moved(column[_COLUMN_DATA][1], number)


class _Reader:
    """Values in Thrift's compact protocol, one after the other."""

    def __init__(self, content: bytes):
        self._content = content
        self._at = 0

    def fields(self) -> _Fields:
        """A structure."""
        fields, number = _Fields(), 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._integer() >> 1
            fields[number] = (head & 15, self._value(head & 15))
        return fields

    def _value(self, kind: int) -> Any:
        if kind <= _FALSE:
            return None
        if kind == _STRUCT:
            return self.fields()
        if kind == _LIST:
            head = self._take(1)[0]
            size = head >> 4 if head >> 4 < 15 else self._integer()
            return head & 15, [self._value(head & 15) for _ in range(size)]
        if kind == _BINARY:
            return self._take(self._integer())
        if kind in (_BYTE, _DOUBLE):
            return self._take(1 if kind == _BYTE else 8)
        return self._integer()

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._content[self._at - size : self._at]

    def _integer(self) -> int:
        value = shift = 0
        while (byte := self._take(1)[0]) > 127:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift


def _write(out: bytearray, kind: int, value: Any) -> None:
    """Write a value as `_Reader` reads it."""
    if kind == _STRUCT:
        before = 0
        for number, (of, content) in value.items():
            if 0 < number - before < 16:
                out.append(number - before << 4 | of)
            else:
                out.append(of)
                _write_integer(out, 2 * number)
            _write(out, of, content)
            before = number
        out.append(0)
    elif kind == _LIST:
        of, several = value
        if len(several) < 15:
            out.append(len(several) << 4 | of)
        else:
            out.append(15 << 4 | of)
            _write_integer(out, len(several))
        for one in several:
            _write(out, of, one)
    elif kind == _BINARY:
        _write_integer(out, len(value))
        out += value
    elif kind in (_BYTE, _DOUBLE):
        out += value
    elif kind > _FALSE:
        _write_integer(out, value)


def _write_integer(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
