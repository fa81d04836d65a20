"""Test vectors as an iterator: what a cocotb test or a kernel's test reads record by record."""
import functools
import keyword
import operator
from collections import namedtuple

from . import _core
from ._views import raise_value

#: Records that are made at a time.
_BATCH = 1024


def _attribute(name):
    return name + "_" if keyword.iskeyword(name) else name


@functools.lru_cache(maxsize=None)
def _record_type(fields):
    """A named tuple that can be pickled: by its fields, not by a name."""

    class Record(namedtuple("Record", [*fields, "cls"])):
        __slots__ = ()

        def __reduce__(self):
            return _record, (fields, tuple(self))

    return Record


def _record(fields, codes):
    return _record_type(fields)(*codes)


class Vectors:
    """Records of inputs and expected results; record i is a function of the options and i.

    A record is a named tuple of the fields, a code (int) or, where a field has several, a tuple of them, with the name of the
    record's class behind: `cls`; the field `in` of conversions is `in_`. word() gives such a field as one integer.
    """

    def __init__(self, options):
        self._options = options
        self._maker = maker = _core.make_vectors(**options)
        #: Of each field: name, bits, count, format (its name, or None) and whether it is a result.
        self.fields = maker.fields
        self._record = _record_type(tuple(_attribute(field["name"]) for field in self.fields))
        self._bits = {field["name"]: field["bits"] for field in self.fields}

    def __repr__(self):
        return f"<numemu.Vectors {len(self)} of {self.header}>"

    def __reduce__(self):
        return Vectors, (self._options,)

    @property
    def header(self):
        """What the records are about, as the first line of a file says it."""
        return self._maker.header

    def __len__(self):
        return len(self._maker)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = operator.index(i)
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"record {i} of {len(self)}")
        return next(self._rows(i, 1))

    def __iter__(self):
        for first in range(0, len(self), _BATCH):
            yield from self._rows(first, min(_BATCH, len(self) - first))

    def arrays(self, first=0, n=None):
        """Records [first, first + n) as a dict: for each field uint64 [n], or [n, count]."""
        return self._maker.records(first, len(self) - first if n is None else n)[0]

    def word(self, record, name):
        """All codes of a field as one integer, element 0 in its lowest bits: a packed vector of a port."""
        if name not in self._bits:
            raise_value(f"word: unknown field '{name}'; known: {', '.join(self._bits)}")
        codes = getattr(record, _attribute(name))
        if isinstance(codes, int):
            return codes
        word = 0
        for code in reversed(codes):
            word = word << self._bits[name] | code
        return word

    def _rows(self, first, n):
        columns, classes = self._maker.records(first, n)
        lists = [columns[field["name"]].tolist() for field in self.fields]
        for *codes, cls in zip(*lists, classes):
            yield self._record(*(tuple(code) if isinstance(code, list) else code for code in codes), cls)


def vectors(subject, *, style="mixed", n=None, seed=0, level=1, **options):
    """Test vectors of a unit or an operation: a Vectors, to iterate over.

    subject: a unit (numemu.Unit, or what numemu.unit() takes) or an operation: convert, mul, add, fma, div, sqrt, ..
    (`numemu vectors --help` lists them).
    style: mixed, random, edges, exhaustive, cancel, subnormal, overflow, ties, alignment, near_ties, carry.
    n: records (10,000; a million at level 2). options: k; of operations format, from_, to, rounding, overflow; of units that take
    any format format_a, format_b. The records are those of `numemu vectors`.
    """
    key = "op" if subject in _core.OPERATIONS else "unit"
    return Vectors(dict(options, **{key: subject}, style=style, n=n, seed=seed, level=level))
