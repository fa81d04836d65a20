"""The colours of numemu's reports, for matplotlib.

    import matplotlib.pyplot as plt
    from numemu import style
    with style.context():
        plt.plot(bits, accuracy, color=style.FLOAT)
"""

#: Of kinds of formats, as in every chart of a report; readable for the colour-blind (Okabe and Ito).
FLOAT, INT, BLOCK, MIXED, OTHER = "#0072b2", "#c65300", "#8a6400", "#00825e", "#a8548a"
#: In the order in which a figure takes them.
CYCLE = (FLOAT, INT, MIXED, OTHER, BLOCK)
#: A measured interval, text, axes, and lines of a grid.
PALE, INK, MUTED, RULE = "#a9cbe3", "#1b1e22", "#5b636d", "#d5d9de"
#: From good to bad in seven steps, and from little to much.
DIVERGING = ("#10294f", "#1b4f8f", "#3a7cbf", "#79a9d4", "#d3a353", "#d97b1f", "#a94e00")
SEQUENTIAL = ("#f1f4f7", "#dbe4ee", "#bccfe2", "#93b1d0", "#5f86b3", "#345a8c", "#16294f")


def parameters():
    """The style as a dict for matplotlib.rcParams."""
    from cycler import cycler

    return {
        "axes.prop_cycle": cycler(color=CYCLE),
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.titlesize": "medium",
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": RULE,
        "grid.linewidth": 0.6,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "text.color": INK,
        "legend.frameon": False,
        "figure.figsize": (6.0, 3.2),
        "figure.dpi": 96,
        "savefig.bbox": "tight",
    }


def use():
    """Draws every figure from now on in this style."""
    import matplotlib

    matplotlib.rcParams.update(parameters())


def context():
    """The style within a `with` block."""
    import matplotlib

    return matplotlib.rc_context(parameters())


def colormap(name="sequential"):
    """DIVERGING or SEQUENTIAL as a colormap of matplotlib."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = {"sequential": SEQUENTIAL, "diverging": DIVERGING}[name]
    return LinearSegmentedColormap.from_list(f"numemu_{name}", colours)
