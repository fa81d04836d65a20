"""What formats do to numbers: errors of several of them side by side, and the scale that loses least."""
from . import _core
from ._views import raise_value


def best_scale(format, dist, *, rounding="rne", overflow="saturate", seed=0):
    """The scales with the least mean square error of scale * Q(x / scale), saturated.

    format: a scalar one of at most 16 bits. dist: a law or numbers, as numemu.error() takes them.
    Returns {"real": .., "power_of_two": ..}, each a dict of scale, log2_scale, mse and sqnr_db.
    """
    draws = 1000 if isinstance(dist, str) and not dist.endswith(".npy") else None
    analysis = _core.error(format, dist, rounding=rounding, overflow=overflow, seed=seed, n=draws, best_scale=True)
    return analysis["best_scale"]


def errors(formats, dist, *, figures=("sqnr_db", "mse", "overflow", "underflow"), **options):
    """A table: one dict for each format, which pandas.DataFrame() takes.

    Its keys are format, bits, scale, and for each of `figures` its name (predicted), NAME_measured and NAME_verdict.
    formats: names or numemu.Format, or one of them; dist and options: as numemu.error() takes them.
    """
    rows = []
    for one in [formats] if isinstance(formats, (str, _core.Format)) else formats:
        analysis = _core.error(one, dist, **options)
        row = {"format": analysis["format"], "bits": _core.format(one).bits, "scale": analysis["scale"]}
        for name in figures:
            if name not in analysis["figures"]:
                raise_value(f"errors: unknown figure '{name}'; known: {', '.join(analysis['figures'])}")
            figure = analysis["figures"][name]
            row[name] = figure["predicted"]
            row[name + "_measured"] = figure["measured"]
            row[name + "_verdict"] = figure["verdict"]
        rows.append(row)
    return rows
