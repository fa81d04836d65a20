#!/usr/bin/env python3
"""Writes the verdict tables of these pages from the recorded conclusions of data/results.

usage: verdicts.py [--check] [ROOT]     --check: names the pages whose tables differ, exit 1
A page says where a table goes: <!-- verdicts of FOLDER --> ... <!-- end of verdicts -->, FOLDER one of data/results.
"""
import json
import pathlib
import re
import sys

REGION = re.compile(r"(<!-- verdicts of (\S+) -->\n).*?(?=<!-- end of verdicts -->)", re.S)


def number(value):
    """Four digits, as reports print them; JSON writes a value that is no finite number as null."""
    if not isinstance(value, (int, float)):
        return "-"
    return f"{value:.4g}".replace("e+0", "e").replace("e-0", "e-")


def spread(half):
    """What a number may be off by, behind it; nothing where that is not known, or 0."""
    return f" ± {half:.2g}".replace("e+0", "e").replace("e-0", "e-") if isinstance(half, (int, float)) and half > 0 else ""


def cell(text):
    """The text inside a Markdown table."""
    return re.sub(r"([|\[\]*_])", r"\\\1", str(text))


def commands(results):
    """Folder to command, from the table of data/results/README.md."""
    return dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)`", (results / "README.md").read_text(), re.M))


def table(results, folder):
    conclusion = json.loads((results / folder / "experiment.json").read_text())
    seeds = conclusion["settings"].get("seeds")
    lines = [f"`{commands(results)[folder]}`" + (f", seeds: {seeds}." if seeds else "."),
             "The figures are those of the worst finding of each claim.", "",
             "| claim | worst finding | predicted ± tolerance | measured ± half of 95 % | 95 % interval | verdict | hold, undecided, fail |",
             "|---|---|---:|---:|---|---|---|"]
    for claim in conclusion["claims"]:
        worst = claim.get("worst") or {}
        interval = worst.get("ci95")
        known = interval and None not in interval
        cells = [claim["claim"], worst.get("what", "-"), number(worst.get("predicted")) + spread(worst.get("tolerance")),
                 number(worst.get("measured")) + spread((interval[1] - interval[0]) / 2 if known else None),
                 f"[{number(interval[0])}, {number(interval[1])}]" if interval else "-", claim["verdict"] or "not tested",
                 f"{claim['holds']}, {claim['undecided']}, {claim['fails']}"]
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    roots = [argument for argument in arguments if argument != "--check"]
    root = pathlib.Path(roots[0]) if roots else pathlib.Path(__file__).resolve().parents[2]
    results = root / "data" / "results"
    stale = []
    for page in sorted((root / "docs" / "experiments").glob("*.md")):
        text = page.read_text()
        missing = [folder for _, folder in REGION.findall(text) if not (results / folder / "experiment.json").exists()]
        if missing:
            print(f"{page.relative_to(root)}: data/results/{missing[0]} has no recorded conclusion")
            return 1
        written = REGION.sub(lambda region: region[1] + table(results, region[2]), text)
        if written != text:
            stale.append(page.relative_to(root))
            if not check:
                page.write_text(written)
    for page in stale:
        print(f"{page}: {'its verdicts differ from the recorded ones: python3 docs/experiments/verdicts.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
