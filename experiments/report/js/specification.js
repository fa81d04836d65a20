// What the figures of a report show: their data under the choices of a reader and their specifications. It needs no
// document: the page draws them on screen, Node.js for papers.
function reportFigures(page) {
  "use strict";
  const all = page.datasets;
  // All units first: those of one alone are chosen, never taken for the answer.
  const chosen = {
    unit: page.units.length === 1 ? page.units[0] : "",
    point: Math.max(0, page.choices.findIndex((choice) => choice.i === page.chosen)),
    tensor: 0,
    format: Math.max(0, all.grids.findIndex((g) => g.bits >= 4 && g.family === "float")),
  };
  const FEW = 16;  // names that can stand beside their points

  // What each named data set of a chart is under the present choices.
  const ofUnit = (name) => () => all[name].filter((d) => !chosen.unit || d.unit === chosen.unit);
  const sources = {
    points: ofUnit("points"),
    labels: () => [],  // of the chart, below
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
  function namesIn(node, found = new Set()) {
    if (Array.isArray(node)) {
      for (const item of node) namesIn(item, found);
    } else if (node && typeof node === "object") {
      if (node.data && typeof node.data.name === "string") found.add(node.data.name);
      for (const key of Object.keys(node)) namesIn(node[key], found);
    }
    return found;
  }

  // Legends name only what is drawn: the values that occur in a field of the data.
  const legends = {
    families: () => sources.points().map((d) => d.family),
    series: () => sources.predictions().map((d) => d.series),
    kinds: () => sources.layers().map((d) => d.kind),
  };

  const known = (x) => x !== null && x !== undefined;
  // Records that a chart draws: they have the field that it needs and stay within its limit.
  const drawn = (meta) => (d) => (!meta.needs || known(d[meta.needs])) &&
    (!meta.below || !known(d[meta.below.field]) || d[meta.below.field] < meta.below.limit);

  // Points that have names beside them: all where they are few, else those of the front, where a chart has one.
  function named(meta) {
    const points = (meta.names ? sources[meta.names]() : sources.points().filter((d) => known(d.bits))).filter(drawn(meta));
    if (points.length <= FEW || !meta.front) return points.length <= FEW ? points : [];
    let best = -Infinity;
    return points.sort((a, b) => a.bits - b.bits || b[meta.front] - a[meta.front])
      .filter((d) => d[meta.front] > best && ((best = d[meta.front]), true));
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
    const columns = width >= 640 ? panels : 1;
    spec.columns = columns;
    spec.spec.width = Math.max(140, Math.min(420, Math.floor((width - 52) / columns) - 32));
    spec.spec.height = Math.min(spec.spec.width, 320);
    if (columns === 1) spec.config = { legend: { columns: 2, labelLimit: 110 } };
  }

  // Ticks at powers of two, as many as an axis has room for.
  function fitPowers(spec) {
    const axis = spec.encoding?.x?.axis;
    if (spec.encoding?.x?.scale?.base !== 2 || !axis) return;
    const least = Math.min(...spec.datasets[spec.data.name].map((d) => d[spec.encoding.x.field]));
    const count = Math.max(0, Math.floor(-Math.log2(least) + 1e-9)), step = Math.max(1, Math.ceil(count / 12));
    axis.values = Array.from({ length: Math.floor(count / step) + 1 }, (_, i) => 2 ** (-i * step));
  }

  // Points that differ by a fraction of a bit do not fill an axis of bits alone.
  function fitBits(spec) {
    const LEAST = 1;
    const bits = sources.points().filter((d) => known(d.bits) && drawn(spec.usermeta)(d)).map((d) => d.bits);
    const least = Math.min(...bits), most = Math.max(...bits);
    if (bits.length === 0 || most - least >= LEAST) return;
    const from = (least + most - LEAST) / 2;
    for (const layer of spec.layer || [])
      if (layer.encoding?.x?.field === "bits" && layer.encoding.x.scale) layer.encoding.x.scale.domain = [from, from + LEAST];
  }

  // Classes of colours stand in as many columns as the width has room for.
  function fitLegends(node, width) {
    if (!node || typeof node !== "object") return;
    if (node.legend?.columns) node.legend.columns = Math.max(2, Math.min(node.legend.columns, Math.floor((width - 130) / 72)));
    for (const key of Object.keys(node)) if (key !== "datasets") fitLegends(node[key], width);
  }

  // A figure is {chart} or, of an experiment, {chart: "experiment", number}.
  const isOfExperiment = (figure) => figure.number !== undefined;
  function specification(figure, width) {
    const spec = JSON.parse(JSON.stringify(page.charts[figure.chart]));
    if (isOfExperiment(figure)) return experimentFigure(spec, JSON.parse(JSON.stringify(page.experiment[figure.number])), width);
    spec.datasets = {};
    for (const name of namesIn(spec)) if (sources[name]) spec.datasets[name] = sources[name]();
    if (spec.datasets.labels) spec.datasets.labels = named(spec.usermeta).map((d) => ({ ...d }));
    // A layer with data of its own that are empty would leave an empty mark.
    if (spec.layer) spec.layer = spec.layer.filter((layer) => !layer.data?.name || spec.datasets[layer.data.name].length > 0);
    for (const param of spec.params || []) {
      const there = new Set(legends[param.name]?.());
      if (legends[param.name]) param.value = param.value.filter((name) => there.has(name));
    }
    if (spec.facet) fitPanels(spec, width);
    else fitRows(spec);
    fitBits(spec);
    fitPowers(spec);
    fitLegends(spec, width);
    return spec;
  }

  // The records that a figure draws.
  function recordsOf(figure) {
    if (isOfExperiment(figure)) return page.experiment[figure.number].records;
    const meta = page.charts[figure.chart].usermeta;
    const name = sources[meta.data] ? meta.data : [...namesIn(page.charts[figure.chart])][0];
    return sources[name]().filter(drawn(meta));
  }

  // Whether the present choices leave a chart without a mark.
  function isEmpty(figure) {
    const meta = page.charts[figure.chart].usermeta;
    return !isOfExperiment(figure) && sources[meta.data] !== undefined && !sources[meta.data]().some(drawn(meta));
  }

  // What captions say of the present choices, by placeholder.
  const numberText = (x) => (known(x) ? String(Number(x.toPrecision(4))) : "–");
  function sayings() {
    const choice = page.choices[chosen.point], t = all.tensors[chosen.tensor], g = all.grids[chosen.format];
    return {
      unit: chosen.unit ? "Unit " + chosen.unit : "All units",
      ...(choice && { point: choice.words }),
      ...(t && { tensor: t.layer + " " + t.role + ", " + t.n + " elements, absolute maximum " + numberText(t.absmax) +
        (g ? ", under " + g.format + " (" + g.values.length + " values, largest " + numberText(g.largest) + ")" : "") }),
    };
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
  return { chosen, config, specification, recordsOf, isEmpty, namesIn, sayings };
}
