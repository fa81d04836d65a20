// Draws every figure from the page's data; drop-down lists choose the unit, the point, the tensor and the format.
(function () {
  "use strict";
  const holder = document.getElementById("report-data");
  if (!holder || typeof vegaEmbed === "undefined") return;
  const page = JSON.parse(holder.textContent);
  const all = page.datasets;
  const plots = Array.from(document.querySelectorAll(".plot"));
  // All units first: those of one alone are chosen, never taken for the answer.
  const chosen = { unit: page.units.length === 1 ? page.units[0] : "", point: 0, tensor: 0, format: 0 };

  const numberText = (x) => (x === null || x === undefined ? "–" : String(Number(x.toPrecision(4))));

  function say(name, text) {
    for (const span of document.querySelectorAll('[data-say="' + name + '"]')) span.textContent = text;
  }

  // What each named data set of a chart is under the present choices.
  const ofUnit = (name) => () => all[name].filter((d) => !chosen.unit || d.unit === chosen.unit);
  const sources = {
    points: ofUnit("points"),
    not_finite: () => sources.points().filter((d) => d.not_finite !== null && d.bits !== null),
    predictions: ofUnit("predictions"),
    expected: ofUnit("expected"),
    expected_diagonal: () => all.expected_diagonal,
    // A cell of the map has one unit.
    sensitivity: () => ofUnit("sensitivity")().map((d) =>
      chosen.unit || page.units.length < 2 ? d : { ...d, format: d.format + " on " + d.unit }),
    baseline: () => all.baseline.slice(0, 1),
    diagonal: () => all.diagonal,
    steps: () => all.steps,
    layers() {
      const choice = page.choices[chosen.point];
      return choice ? all.layers.filter((d) => d.i === choice.i) : [];
    },
    histogram() {
      const t = all.tensors[chosen.tensor];
      if (!t) return [];
      const width = (t.high - t.low) / t.counts.length;
      return t.counts.map((count, i) => ({ from: t.low + i * width, to: t.low + (i + 1) * width, count }));
    },
    grid() {
      const t = all.tensors[chosen.tensor], g = all.grids[chosen.format];
      if (!t || !g) return [];
      const scale = t.absmax / g.largest;
      return g.values.map((code) => ({ code, value: code * scale }))
        .filter((d) => d.value >= t.low && d.value <= t.high);
    },
  };

  // The names of the data sets that a specification asks for.
  function namesIn(node, found) {
    if (Array.isArray(node)) {
      for (const item of node) namesIn(item, found);
    } else if (node && typeof node === "object") {
      if (node.data && typeof node.data.name === "string") found.add(node.data.name);
      for (const key of Object.keys(node)) namesIn(node[key], found);
    }
    return found;
  }

  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const config = {
    font, background: null, padding: { left: 2, right: 8, top: 4, bottom: 2 },
    view: { stroke: null },
    axis: {
      labelColor: "var(--muted)", titleColor: "var(--ink)", domainColor: "var(--muted)", tickColor: "var(--muted)",
      gridColor: "var(--rule)", gridOpacity: 0.6, labelFontSize: 11, titleFontSize: 11.5, titleFontWeight: 400,
      titlePadding: 8, tickSize: 4, labelLimit: 160,
    },
    axisX: { labelFlush: false, labelSeparation: 8 },
    header: { labelColor: "var(--ink)", titleColor: "var(--ink)", labelFontWeight: 600 },
    legend: {
      orient: "top", labelColor: "var(--ink)", titleColor: "var(--muted)", labelFontSize: 11, titleFontSize: 11,
      titleFontWeight: 400, symbolSize: 60, rowPadding: 2, columnPadding: 14, offset: 8, labelLimit: 200,
      symbolOpacity: 1, symbolBaseFillColor: "var(--ink)", symbolBaseStrokeColor: "var(--ink)",
    },
  };

  // Legends name only what is drawn: the values that occur in a field of the data.
  const legends = {
    families: () => sources.points().map((d) => d.family),
    pairings: () => sources.points().map((d) => d.pairing),
    series: () => sources.predictions().map((d) => d.series),
    kinds: () => sources.layers().map((d) => d.kind),
  };

  function specification(plot) {
    const spec = JSON.parse(JSON.stringify(page.charts[plot.dataset.chart]));
    if (plot.dataset.number) return experimentFigure(spec, page.experiment[Number(plot.dataset.number)], plot.clientWidth);
    spec.datasets = {};
    for (const name of namesIn(spec, new Set())) if (sources[name]) spec.datasets[name] = sources[name]();
    // A layer with data of its own that are empty would leave an empty mark.
    if (spec.layer) spec.layer = spec.layer.filter((layer) => !layer.data?.name || spec.datasets[layer.data.name].length > 0);
    for (const param of spec.params || []) {
      const drawn = new Set(legends[param.name]?.());
      if (legends[param.name]) param.value = param.value.filter((name) => drawn.has(name));
    }
    if (spec.facet) fitPanels(spec, plot.clientWidth);
    else fitRows(spec);
    return spec;
  }

  // A height by rows is turned into pixels: Vega-Lite cannot fit the width to the page and step the height at once.
  function fitRows(spec) {
    const field = spec.usermeta.rows;
    if (!field) return;
    const values = spec.datasets[spec.data.name].map((d) => d[field]).filter((value) => value !== null);
    spec.height = spec.height.step * new Set(values).size;
  }

  // A row of panels that shrink to the page; below a readable width they stand in one column.
  function fitPanels(spec, width) {
    const panels = new Set(spec.datasets[spec.data.name].map((d) => d[spec.facet.field])).size || 1;
    const columns = width >= 720 ? panels : 1;
    spec.columns = columns;
    spec.spec.width = Math.max(180, Math.min(420, Math.floor((width - 52) / columns) - 32));
    spec.spec.height = Math.min(spec.spec.width, 320);
  }

  // Whether the present choices leave a chart without a mark: its records lack the field that it needs, or pass its limit.
  function isEmpty(meta) {
    if (!sources[meta.data]) return false;
    const known = (x) => x !== null && x !== undefined;
    return !sources[meta.data]().some((d) => (!meta.needs || known(d[meta.needs])) &&
      (!meta.below || !known(d[meta.below.field]) || d[meta.below.field] < meta.below.limit));
  }

  const views = new Map();
  async function draw(plot) {
    const old = views.get(plot);
    if (old) old.finalize();
    views.delete(plot);
    plot.replaceChildren();
    const meta = page.charts[plot.dataset.chart].usermeta;
    plot.classList.toggle("empty", !plot.dataset.number && isEmpty(meta));
    if (plot.classList.contains("empty")) {
      plot.textContent = "Nothing to draw" + (chosen.unit ? " on this unit" : "") + ": " + meta.empty + ".";
      plot.dataset.drawn = "true";
      return;
    }
    const result = await vegaEmbed(plot, specification(plot), {
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
    const found = namesIn(page.charts[chart], new Set());
    return names.some((name) => found.has(name));
  };

  function sayChoices() {
    say("unit", chosen.unit ? "Unit " + chosen.unit : "All units");
    const choice = page.choices[chosen.point], t = all.tensors[chosen.tensor], g = all.grids[chosen.format];
    if (choice) say("point", choice.words);
    if (t) {
      say("tensor", t.layer + " " + t.role + ", " + t.n + " elements, absolute maximum " + numberText(t.absmax) +
        (g ? ", under " + g.format + " (" + g.values.length + " values, largest " + numberText(g.largest) + ")" : ""));
    }
  }

  function offer(id, texts, start, change) {
    const list = document.getElementById(id);
    if (!list) return;
    if (texts) texts.forEach((text, i) => list.add(new Option(text, String(i))));
    if (start !== null) list.selectedIndex = start;
    list.addEventListener("change", () => { change(list); sayChoices(); });
  }

  chosen.point = Math.max(0, page.choices.findIndex((choice) => choice.i === page.chosen));
  chosen.format = Math.max(0, all.grids.findIndex((g) => g.bits >= 4 && g.family === "float"));
  offer("unit", null, null, (list) => { chosen.unit = list.value; redraw(uses("points", "predictions", "sensitivity")); });
  offer("point", page.choices.map((choice) => choice.text), chosen.point,
    (list) => { chosen.point = list.selectedIndex; redraw(uses("layers")); });
  offer("tensor", all.tensors.map((t) => t.layer + " " + t.role), chosen.tensor,
    (list) => { chosen.tensor = list.selectedIndex; redraw(uses("histogram")); });
  offer("format", all.grids.map((g) => g.format), chosen.format,
    (list) => { chosen.format = list.selectedIndex; redraw(uses("grid")); });

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
