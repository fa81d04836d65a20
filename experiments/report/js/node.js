// Outside a browser: draws every figure of a page at the widths that are asked for; the answer is JSON.
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
