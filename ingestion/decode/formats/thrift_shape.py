"""Checks that bytes have the shape of one Thrift struct, before the library reads them.

thriftpy2 believes the sizes it reads: a list of 2,000,000,000 elements of a type that takes no bytes keeps it busy for
minutes, a text that is longer than the record for ever. Here every element takes a byte at least, and all are there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ingestion.decode.formats.base import BadRecord

_DEEPEST = 64
_TOO_SHORT = "it ends too early"


class _Shape(ABC):
    """A place in the bytes; methods move it on."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._size = len(payload)
        self._place = 0

    def check(self) -> None:
        """Raise ``BadRecord`` unless the bytes are one struct and nothing more."""
        self.struct(_DEEPEST)
        left = len(self._payload) - self._place
        if left:
            raise BadRecord(f"not Thrift: {left} bytes follow the struct")

    @abstractmethod
    def struct(self, depth: int) -> None:
        """Move on behind a struct."""

    @abstractmethod
    def value(self, kind: int, depth: int) -> None:
        """Move on behind a value of that kind."""

    def elements(self, kinds: tuple[int, ...], count: int, depth: int) -> None:
        """``count`` times a value of each kind."""
        if not 0 <= count <= len(self._payload) - self._place:
            raise BadRecord(f"not Thrift: {_TOO_SHORT}")
        if not depth:
            raise BadRecord(f"not Thrift: nested more than {_DEEPEST} levels deep")
        for _ in range(count):
            for kind in kinds:
                self.value(kind, depth - 1)

    def move(self, count: int) -> None:
        end = self._place + count
        if not self._place <= end <= self._size:
            raise BadRecord(f"not Thrift: {_TOO_SHORT}")
        self._place = end

    def byte(self) -> int:
        place = self._place
        if place >= self._size:
            raise BadRecord(f"not Thrift: {_TOO_SHORT}")
        self._place = place + 1
        return self._payload[place]

    def unknown(self, kind: int) -> BadRecord:
        return BadRecord(f"not Thrift: it has an unknown type {kind}")


_BINARY_WIDTHS = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}  # bool, byte, double, i16, i32, i64


class BinaryShape(_Shape):
    """Thrift's binary protocol."""

    def struct(self, depth: int) -> None:
        while kind := self.byte():
            self.move(2)
            self.value(kind, depth)

    def value(self, kind: int, depth: int) -> None:
        width = _BINARY_WIDTHS.get(kind)
        if width is not None:
            self.move(width)
        elif kind == 11:
            self.move(self._length())
        elif kind == 12 and depth:
            self.struct(depth - 1)
        elif kind == 13:
            kinds = (self.byte(), self.byte())
            self.elements(kinds, self._length(), depth)
        elif kind in (14, 15):
            kinds_ = (self.byte(),)
            self.elements(kinds_, self._length(), depth)
        else:
            raise self.unknown(kind)

    def _length(self) -> int:
        self.move(4)
        return int.from_bytes(self._payload[self._place - 4 : self._place], signed=True)


class CompactShape(_Shape):
    """Thrift's compact protocol."""

    def struct(self, depth: int) -> None:
        while head := self.byte():
            if not head >> 4:
                self._varint()  # the field's number
            if head & 15 not in (1, 2):  # a boolean field is its own value
                self.value(head & 15, depth)

    def value(self, kind: int, depth: int) -> None:
        if kind in (1, 2, 3):
            self.move(1)
        elif kind in (4, 5, 6):
            self._varint()
        elif kind == 7:
            self.move(8)
        elif kind == 8:
            self.move(self._varint())
        elif kind in (9, 10):
            head = self.byte()
            self.elements((head & 15,), head >> 4 if head >> 4 < 15 else self._varint(), depth)
        elif kind == 11:
            count = self._varint()
            kinds = self.byte() if count else 0
            self.elements((kinds >> 4, kinds & 15), count, depth)
        elif kind == 12 and depth:
            self.struct(depth - 1)
        else:
            raise self.unknown(kind)

    def _varint(self) -> int:
        value = self.byte()
        if value < 0x80:
            return value
        value &= 0x7F
        for shift in range(7, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise BadRecord("not Thrift: a number does not end")
