// Outside a browser: draws every figure of a page at the widths that are asked for; the answer is JSON.

// Stands in for the document in which Vega measures text: Helvetica's widths by kinds of letters, and a part more for wider
// fonts that readers put in its place.
function measuringDocument() {
  "use strict";
  const MORE = 1.14;
  const width = (letter) => ("ijl.,:;|!'".includes(letter) ? 0.25 : "ft()[]/ I-".includes(letter) ? 0.31 : "mwMW%@".includes(letter) ? 0.87 :
    /[A-Z]/.test(letter) ? 0.69 : letter.charCodeAt(0) < 0x2000 ? 0.56 : 1);
  const context = {
    font: "11px sans-serif",
    measureText(text) {
      const size = Number(this.font.match(/([\d.]+)px/)?.[1] ?? 11);
      return { width: MORE * size * Array.from(text).reduce((sum, letter) => sum + width(letter), 0) };
    },
  };
  return { createElement: () => ({ getContext: () => context }) };
}

async function drawPaperFigures(page) {
  "use strict";
  const view = async (spec, config) => {
    const drawn = new vega.View(vega.parse(vegaLite.compile(spec, { config }).spec), { renderer: "none", logLevel: vega.Error });
    await drawn.runAsync();
    return drawn;
  };
  const figures = reportFigures(page);
  const out = [], said = figures.sayings();
  for (const figure of page.figures) {
    if (figures.isEmpty(figure)) continue;
    // Only captions of the report have placeholders; those of experiments are anyone's words.
    if (figure.number === undefined) figure.caption = figure.caption.replace(/\{([a-z]+)\}/g, (mark, name) => said[name] ?? mark);
    const svgs = [];
    for (const inches of page.inches) svgs.push(await paperFigure(figures, figure, inches, page.style, figure, view));
    out.push({ name: figure.name, svgs, records: figures.recordsOf(figure) });
  }
  return out;
}
