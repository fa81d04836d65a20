"""What traces and verifications give: dicts that print as the program prints them."""


def format_named(name):
    """What unpickling a format calls."""
    from . import _core

    return _core.format(name)


class Trace(dict):
    """How one output of a unit came about; `numemu gemm --trace --json`, as text with str()."""

    def __init__(self, record, text):
        super().__init__(record)
        self.text = text

    def __str__(self):
        return self.text

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.text)


class Verified(dict):
    """Results held against those that they must be: `numemu verify --json`, as text with str().

    True where every result is equal.
    """

    def __init__(self, record, text, holds):
        super().__init__(record)
        self.text = text
        self.holds = holds

    def __bool__(self):
        return self.holds

    def __str__(self):
        return self.text

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.text)
