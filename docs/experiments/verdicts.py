#!/usr/bin/env python3
"""Writes the answers and the verdict tables of these pages from the recorded conclusions of data/results.

usage: verdicts.py [--check] [ROOT]     --check: names the pages whose tables differ, exit 1
A page says where they go: <!-- answer of FOLDER --> ... <!-- end of answer --> below its title, and
<!-- verdicts of FOLDER --> ... <!-- end of verdicts -->, FOLDER one of data/results. Which published claims a run tests, and
which of them the paper tests on another set-up, is read from docs/systems.md (write that first).
"""
import json
import pathlib
import re
import sys

REGION = re.compile(r"(<!-- (answer|verdicts) of (\S+) -->\n).*?(?=<!-- end of \2 -->)", re.S)


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


def recorded(results):
    """Folder to command and result, from the table of data/results/README.md."""
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)`[^|]*\| (.*) \|$", (results / "README.md").read_text(), re.M)
    return {folder: (command, result) for folder, command, result in rows}


def published(systems):
    """Rows of docs/systems.md: system, the paper's words, names of the runs (none: not tested), the run's cell, the verdict."""
    system, said = "", ""
    for line in systems.read_text().splitlines():
        if line.startswith("## "):
            system = line[3:]
        cells = re.split(r"(?<!\\) ?\| ?", line)[1:-1]
        if len(cells) != 6 or cells[0] in ("published claim", "---"):
            continue
        said = said if cells[0] == "the same" else cells[0]
        run = re.match(r"\[([^\]]+)\]\(", cells[1])
        same = re.search(r"; the same in ([^;]+); ", cells[1])
        yield system, said, ([run[1]] if run else []) + (same[1].split(", ") if same else []), cells[1], cells[5]


def counted(tests, conclusion):
    """"2 of 3 hold" in words: of claims that any set-up tests, and of those that the paper tests on another."""
    anywhere = [verdict for _, said, _, _, verdict in tests if "; there: " not in said]
    elsewhere = [verdict for _, said, _, _, verdict in tests if "; there: " in said]
    untested = sum("(published" in claim["claim"] and claim["verdict"] is None for claim in conclusion["claims"])

    def words(verdicts):
        kinds = (("holds", "hold"), ("undecided", "undecided"), ("fails", "fail"))
        counts = [(sum(verdict.startswith(one) for verdict in verdicts), one, many) for one, many in kinds]
        return ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts if n)

    parts = [f"of {len(anywhere)} published claim{'s' * (len(anywhere) != 1)} {words(anywhere)}"] if anywhere else []
    if elsewhere:
        of = f"of {len(elsewhere)}" + ("" if parts else f" published claim{'s' * (len(elsewhere) != 1)}")
        parts.append(f"{of} whose papers test larger networks, longer trainings or other machines {words(elsewhere)} in this set-up")
    parts += [f"{untested} {'is' if untested == 1 else 'are'} not tested"] if untested else []
    return "; ".join(parts) or "no published claim"


def answer(results, folder):
    """One sentence: published claims that hold, networks, data, seeds and steps, and what was found."""
    conclusion = json.loads((results / folder / "experiment.json").read_text())
    settings = conclusion["settings"]
    tests = [row for row in published(results.parents[1] / "docs" / "systems.md") if folder in row[2] and row[4] != "not tested"]
    trained = [f"{settings[net]} on {settings[data]}" for net, data in
           (("net", "data"), ("nets", "data"), ("tuned_nets", "tuned_data"), ("text_net", "text_data"), ("text_nets", "text_data"))
           if settings.get(net, "-") != "-" and data in settings]
    run = list(dict.fromkeys(trained))  # a network of two settings once
    run += [f"seeds: {settings['seeds']}"] if "seeds" in settings else []
    prefix = "tuned_" if settings.get("nets") == "-" and settings.get("tuned_nets", "-") != "-" else ""  # files alone are trained
    images, text = (any(settings.get(net, "-") != "-" for net in nets) for nets in (("net", "nets", "tuned_nets"), ("text_net", "text_nets")))
    for name, prefix in ([("steps", prefix)] if images or not text else []) + ([("steps on text", "text_")] if text else []):
        counts = [int(settings[prefix + key]) if settings.get(prefix + key, "").isdigit() else 0 for key in ("train_samples", "batch", "epochs")]
        if all(counts):
            run.append(f"{name}: {-(-counts[0] // counts[1]) * counts[2]}")
    return f"**Answer** (`{folder}`: {'; '.join(run + [counted(tests, conclusion)])}): {recorded(results)[folder][1]}.\n"


def figures(claim):
    """Of the worst finding: what it is, predicted, measured, interval, the verdict of all."""
    worst = claim.get("worst") or {}
    interval = worst.get("ci95")
    known = interval and None not in interval
    return [worst.get("what", "-"), number(worst.get("predicted")) + spread(worst.get("tolerance")),
            number(worst.get("measured")) + spread((interval[1] - interval[0]) / 2 if known else None),
            f"[{number(interval[0])}, {number(interval[1])}]" if interval else "-", claim["verdict"] or "not tested"]


def table(results, folder):
    conclusion = json.loads((results / folder / "experiment.json").read_text())
    seeds = conclusion["settings"].get("seeds")
    lines = [f"`{recorded(results)[folder][0]}`" + (f", seeds: {seeds}." if seeds else "."),
             "The figures are those of the worst finding of each claim.", "",
             "| claim | worst finding | predicted ± tolerance | measured ± half of 95 % | 95 % interval | verdict | hold, undecided, fail |",
             "|---|---|---:|---:|---|---|---|"]
    for claim in conclusion["claims"]:
        cells = [claim["claim"], *figures(claim), f"{claim['holds']}, {claim['undecided']}, {claim['fails']}"]
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
        missing = [folder for _, _, folder in REGION.findall(text) if not (results / folder / "experiment.json").exists()]
        if missing:
            print(f"{page.relative_to(root)}: data/results/{missing[0]} has no recorded conclusion")
            return 1
        written = REGION.sub(lambda region: region[1] + {"answer": answer, "verdicts": table}[region[2]](results, region[3]), text)
        if written != text:
            stale.append(page.relative_to(root))
            if not check:
                page.write_text(written)
    for page in stale:
        print(f"{page}: {'its verdicts differ from the recorded ones: python3 docs/experiments/verdicts.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
