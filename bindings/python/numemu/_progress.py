"""A bar of text for long work: one line that is written again in terminals, one output that is updated in notebooks."""
import sys
import time

_WIDTH = 24


def _in_notebook():
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


def bar_text(label, phase, done, total, seconds):
    """"eval [######......]  50 %  0:12  evaluation": the bar of a state of the work, in one line."""
    share = min(1.0, done / total) if total > 0 else 0.0
    filled = int(share * _WIDTH)
    minutes, rest = divmod(int(seconds), 60)
    return f"{label} [{'#' * filled}{'.' * (_WIDTH - filled)}] {int(100 * share):3d} %  {minutes}:{rest:02d}  {phase}".rstrip()


class Progress:
    """Called with (phase, done, total). `progress` is True, False, None (shown where somebody looks: in terminals and
    notebooks) or a function of your own with these arguments."""

    def __init__(self, label, progress=None):
        self.label, self.call = label, None
        self._begin, self._shown, self._handle, self._stream = time.monotonic(), "", None, sys.stderr
        if callable(progress):
            self.call = progress
        elif progress is not False and _in_notebook():
            self.call = self._display
        elif progress or (progress is None and self._stream is not None and self._stream.isatty()):
            self.call = self._write

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._shown and self._handle is None and self._stream is not None:
            self._stream.write("\n")
            self._stream.flush()

    def _text(self, phase, done, total):
        return bar_text(self.label, phase, done, total, time.monotonic() - self._begin)

    def _write(self, phase, done, total):
        text = self._text(phase, done, total)
        self._stream.write("\r" + text.ljust(len(self._shown)))
        self._stream.flush()
        self._shown = text

    def _display(self, phase, done, total):
        from IPython.display import display

        content = {"text/plain": self._text(phase, done, total)}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def say(text, warning):
    """Warnings of the work, as the program prints them."""
    if warning:
        import warnings

        warnings.warn(text, stacklevel=2)
