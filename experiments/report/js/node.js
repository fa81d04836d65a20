// Outside a browser: draws every figure of a page at the widths that are asked for; the answer is JSON.
async function drawPaperFigures(page) {
  "use strict";
  const view = async (spec, config) => {
    const drawn = new vega.View(vega.parse(vegaLite.compile(spec, { config }).spec), { renderer: "none", logLevel: vega.Error });
    await drawn.runAsync();
    return drawn;
  };
  const figures = reportFigures(page);
  const out = [];
  for (const figure of page.figures) {
    if (figures.isEmpty(figure)) continue;
    const svgs = [];
    for (const inches of page.inches) svgs.push(await paperFigure(figures, figure, inches, page.style, figure, view));
    out.push({ name: figure.name, svgs, records: figures.recordsOf(figure) });
  }
  return out;
}
