// Draws every figure from the page's data; drop-down lists choose the unit, the point, the tensor and the format.
if (typeof document !== "undefined") (function () {
  "use strict";
  const holder = document.getElementById("report-data");
  if (!holder || typeof vegaEmbed === "undefined") return;
  const page = JSON.parse(holder.textContent);
  const all = page.datasets;
  const plots = Array.from(document.querySelectorAll(".plot"));
  const figures = reportFigures(page), chosen = figures.chosen, config = figures.config, namesIn = figures.namesIn;

  function say(name, text) {
    for (const span of document.querySelectorAll('[data-say="' + name + '"]')) span.textContent = text;
  }

  const view = async (spec, config) => (await vegaEmbed(document.createElement("div"), spec, { renderer: "svg", actions: false, ast: true, config })).view;
  const figureOf = (plot) => ({ chart: plot.dataset.chart, ...(plot.dataset.number && { number: Number(plot.dataset.number) }) });

  const views = new Map();
  async function draw(plot) {
    const old = views.get(plot);
    if (old) old.finalize();
    views.delete(plot);
    plot.replaceChildren();
    const meta = page.charts[plot.dataset.chart].usermeta;
    const empty = figures.isEmpty(figureOf(plot));
    plot.classList.toggle("empty", empty);
    const save = plot.parentElement.querySelector("button.save");
    if (save) save.hidden = empty;
    if (empty) {
      plot.textContent = "Nothing to draw" + (chosen.unit ? " on this unit" : "") + ": " + meta.empty + ".";
      plot.dataset.drawn = "true";
      return;
    }
    const spec = figures.specification(figureOf(plot), plot.clientWidth);
    const result = await vegaEmbed(plot, await placeLabels(spec, plot.clientWidth, (trial) => view(trial, config)), {
      renderer: "svg", actions: false, ast: true, config, tooltip: { theme: "report" },
    });
    views.set(plot, result);
    plot.dataset.drawn = "true";
  }

  // One drawing at a time for each plot, and always the latest choices.
  const pending = new Map();
  function redraw(select) {
    for (const plot of plots) {
      if (!select(plot.dataset.chart)) continue;
      const last = pending.get(plot) || Promise.resolve();
      pending.set(plot, last.then(() => draw(plot)).catch((error) => {
        plot.textContent = "This figure could not be drawn.";
        console.error(error);
      }));
    }
  }

  const uses = (...names) => (chart) => {
    const found = namesIn(page.charts[chart]);
    return names.some((name) => found.has(name));
  };

  function sayChoices() {
    for (const [name, text] of Object.entries(figures.sayings())) say(name, text);
  }

  function offer(id, texts, start, change) {
    const list = document.getElementById(id);
    if (!list) return;
    if (texts) texts.forEach((text, i) => list.add(new Option(text, String(i))));
    if (start !== null) list.selectedIndex = start;
    list.addEventListener("change", () => { change(list); sayChoices(); });
  }

  offer("unit", null, null, (list) => { chosen.unit = list.value; redraw(uses("points", "predictions", "sensitivity")); });
  offer("point", page.choices.map((choice) => choice.text), chosen.point,
    (list) => { chosen.point = list.selectedIndex; redraw(uses("layers")); });
  offer("tensor", all.tensors.map((t) => t.layer + " " + t.role), chosen.tensor,
    (list) => { chosen.tensor = list.selectedIndex; redraw(uses("histogram")); });
  offer("format", all.grids.map((g) => g.format), chosen.format,
    (list) => { chosen.format = list.selectedIndex; redraw(uses("grid")); });

  // A figure under the present choices as a file, for a page of two columns.
  const WIDE = 7;  // inches
  async function save(plot) {
    const caption = plot.parentElement.querySelector("figcaption");
    const words = { title: caption.querySelector("b").textContent, caption: caption.textContent };
    const svg = await paperFigure(figures, figureOf(plot), WIDE, document.getElementById("look").textContent, words, view);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    link.download = plot.parentElement.id + ".svg";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  for (const plot of plots) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = "Save as SVG";
    button.addEventListener("click", () => save(plot).catch((error) => console.error(error)));
    plot.parentElement.append(button);
  }

  let width = window.innerWidth, timer = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(() => redraw((chart) => page.charts[chart].facet !== undefined), 150);
  });

  sayChoices();
  redraw(() => true);
})();
