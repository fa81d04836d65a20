// Fills the template of an experiment's chart: the layers that have data, titles, scales, colours, tooltips.
function experimentFigure(spec, chart, width) {
  "use strict";
  // Titles become parts of expressions, where a line cannot break.
  const words = (text) => text.replace(/[\u0000-\u001f\u2028\u2029]/g, " ");
  const xTitle = words(chart.x), yTitle = words(chart.y);
  const bars = chart.kind === "bars";
  const COLOURS = ["--float", "--int", "--mixed", "--other", "--block", "--muted", "--c6", "--c7", "--c8", "--c9", "--c10", "--c11", "--c12", "--c13"];
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"];
  const DASHES = [[6, 4], [2, 3], [8, 3, 2, 3]];  // of lines that take a colour for the second time
  const LAW_DASHES = [[5, 4], [2, 3], [9, 3, 2, 3]];  // of predictions without a measurement
  const FEW = 16;  // names that can stand beside their points
  // An axis that a twentieth of the records stretches by this factor ends before them.
  const STRETCHED = 3, LEAST_RECORDS = 6;
  const ROW = 24, SMALL_ROW = 15, LEAST_ROW = 7;  // pixels of a category with one bar, of each of several, of many
  const TALL = 400;  // pixels that many bars share

  const records = chart.records;
  const names = chart.series.map((s) => s.name);
  const interval = (d) => d.low !== null;
  const line = (d) => chart.kind === "line" || d.predicted;
  const along = (x) => (chart.log_x ? Math.log(x) : x);
  const dot = (d) => !line(d) || (!d.predicted && !d.dense);
  const band = (d) => chart.kind === "line" && d.dense;
  const named = records.filter((d) => !d.predicted && d.name);
  const far = clipFar();
  // Bars stand in a row for each group of series; what is predicted is a diamond on it.
  const groups = [...new Set(chart.series.map((s) => s.group))];
  const groupOf = new Map(chart.series.map((s) => [s.name, s.group]));
  for (const d of records) Object.assign(d, { group: groupOf.get(d.series), what: d.predicted ? "predicted" : "measured" });
  const measured = records.filter((d) => !d.predicted), predicted = records.filter((d) => d.predicted);
  const data = bars ? {
    experiment_bars: chart.log_y ? [] : measured,
    experiment_values: chart.log_y ? measured : [],
    experiment_ends: records.filter(interval),
    experiment_predictions: predicted,
    experiment_far_bars: [...far],
  } : {
    experiment_bands: records.filter((d) => interval(d) && band(d)),
    experiment_lines: records.filter((d) => line(d) && !d.predicted),
    experiment_rules: records.filter((d) => interval(d) && !band(d)),
    experiment_dots: records.filter((d) => dot(d) && !far.has(d)),
    experiment_laws: records.filter((d) => d.predicted),
    labels: chart.kind === "points" && named.length <= FEW ? named.filter((d) => !far.has(d)) : [],
    experiment_hits: records,
    experiment_far: [...far],
  };

  // One legend for everything that tells series apart.
  const drawnBefore = (i) => chart.series.filter((s, j) => j < i && s.predicted === chart.series[i].predicted &&
    s.colour % COLOURS.length === chart.series[i].colour % COLOURS.length).length;
  const beside = (s) => s.predicted && chart.series.some((other) => !other.predicted && other.group === s.group);
  const colour = chart.series.map((s) => {
    const own = "var(" + COLOURS[s.colour % COLOURS.length] + ")";
    return beside(s) ? "color-mix(in srgb, " + own + " 45%, var(--ink))" : own;  // seen on what it predicts
  });
  const dash = chart.series.map((s, i) => beside(s) ? [5, 4] :
    s.predicted ? LAW_DASHES[drawnBefore(i) % LAW_DASHES.length] :
    drawnBefore(i) === 0 ? [1, 0] : DASHES[drawnBefore(i) % DASHES.length]);
  // As many entries side by side as the widest leaves room for.
  const legendColumns = (texts, beside = 60) => Math.max(1, Math.floor((width - beside) / (6 * Math.max(...texts.map((text) => text.length)) + 40)));
  const dotted = new Set(records.filter(dot).map((d) => d.series));
  const shape = chart.series.map((s) => (dotted.has(s.name) ? SHAPES[s.colour % SHAPES.length] : "stroke"));
  const legend = names.length === 1 ? null : { columns: legendColumns(names), symbolStrokeWidth: 1.8, symbolSize: 110,
    ...(dotted.size === 0 && { symbolType: "stroke" }) };
  const plain = (i) => "var(" + COLOURS[i % COLOURS.length] + ")";
  const byGroup = { title: null, sort: null,
    legend: groups.length === 1 ? null : { symbolType: "square", symbolStrokeWidth: 0, columns: legendColumns(groups, 150) },
    scale: { domain: groups, range: groups.map((name) => plain(chart.series.find((s) => s.group === name).colour)) } };
  const byWhat = { title: null, legend: predicted.length === 0 || measured.length === 0 ? null : { orient: "bottom", symbolSize: 70 },
    scale: { domain: ["measured", "predicted"], range: [chart.log_y ? "circle" : "square", "diamond"] } };
  const bySeries = (range) => ({ title: null, sort: null, legend, scale: { domain: names, range } });

  // Labels of a logarithmic axis: by its length at powers of ten, at 1, 2 and 5, or at every tick.
  const logAxis = (fields) => {
    const numbers = records.flatMap((d) => fields.map((field) => d[field])).filter((x) => x !== null);
    const length = Math.max(...numbers) / Math.min(...numbers);
    const digits = length > 100 ? "1" : length > 5 ? "125" : "123456789";
    return { labelOverlap: true, labelExpr: "indexof('" + digits + "', substring(format(datum.value, '.0e'), 0, 1)) < 0 ? '' : " +
      "datum.value >= 1e5 || datum.value < 1e-3 ? format(datum.value, '~e') : format(datum.value, '~g')" };
  };
  // Between whole numbers (copies, bits, steps) there are no ticks.
  const whole = (fields) => records.every((d) => fields.every((field) => d[field] === null || Number.isInteger(d[field])));
  const axis = (title, log, fields, linear) => ({
    title: title || null,
    scale: { ...(log ? { type: "log", nice: false, padding: 8 } : { nice: true, ...linear }), ...(far.domain && fields[0] === "y" && { domain: far.domain, nice: false, padding: 0 }) },
    axis: log ? logAxis(fields) : { labelOverlap: true, ...(whole(fields) && { tickMinStep: 1 }) },
  });
  const value = axis(yTitle, chart.log_y, ["y", "low", "high"], { zero: bars });
  const place = axis(xTitle, chart.log_x, ["x"], { zero: false, padding: chart.kind === "points" ? 8 : 0 });
  const category = { title: xTitle || null, sort: null, scale: { paddingInner: 0.3 }, axis: { labelLimit: Math.max(160, width / 2) } };
  const tooltip = [
    { field: "series", title: "series" }, { field: "name", title: bars ? xTitle || "for" : "name" },
    { field: "x", type: "quantitative", format: ".4~g", title: xTitle || "x" },
    { field: "y", type: "quantitative", format: ".4~g", title: yTitle || "y" },
    { field: "low", type: "quantitative", format: ".4~g", title: "95 % from" },
    { field: "high", type: "quantitative", format: ".4~g", title: "95 % to" },
  ].filter((item) => records.some((d) => d[item.field] !== null && d[item.field] !== "") &&
    (item.field !== "series" || names.length > 1));

  // Records beyond the end of a value axis that they alone would stretch: they stand on its edge with what they are.
  function clipFar() {
    const found = new Set();
    const scaled = (x) => (chart.log_y ? Math.log(x) : x);
    const sorted = records.map((d) => d.y).sort((a, b) => a - b);
    if (sorted.length < LEAST_RECORDS) return found;
    const cut = Math.max(1, Math.floor(sorted.length / 20));
    const range = (from, to) => scaled(sorted[to]) - scaled(sorted[from]);
    const last = sorted.length - 1, whole = range(0, last);
    const zero = (from, to) => (bars && !chart.log_y ? [Math.min(0, sorted[from]), Math.max(0, sorted[to])] : [sorted[from], sorted[to]]);
    for (const [from, to] of [[cut, last], [0, last - cut]]) {
      const kept = zero(from, to), length = scaled(kept[1]) - scaled(kept[0]);
      if (!(length > 0) || whole < STRETCHED * length) continue;
      const margin = length / 12, shift = (x, by) => (chart.log_y ? Math.exp(Math.log(x) + by) : x + by);
      const low = from > 0, edge = shift(kept[low ? 0 : 1], low ? -margin : margin);
      const outside = (d) => (low ? d.y < edge : d.y > edge);
      found.domain = low ? [edge, shift(kept[1], margin)] : [shift(kept[0], -margin), edge];
      if (bars && !chart.log_y) found.domain = [Math.min(0, found.domain[0]), Math.max(0, found.domain[1])].map((x, i) =>
        kept[i] === 0 ? 0 : x);
      for (const d of records.filter(outside)) {
        const right = bars ? !low : along(d.x) > along(records.reduce((sum, one) => sum + one.x, 0) / records.length);
        Object.assign(d, { real: d.y, said: String(Number(d.y.toPrecision(4))).replace("-", "\u2212"), y: edge, arrow: low ? "triangle-down" : "triangle-up",
          align: right ? "right" : "left", dx: right ? -8 : 8, low: null, high: null });
        found.add(d);
      }
      break;
    }
    return found;
  }

  spec.description = chart.title;
  spec.datasets = data;
  spec.layer = spec.layer.filter((layer) => (data[layer.data.name] || []).length > 0);
  for (const layer of spec.layer) {
    const encoding = layer.encoding;
    Object.assign(encoding.x, bars ? value : place);
    Object.assign(encoding.y, bars ? category : value);
    if (encoding.yOffset) encoding.yOffset.scale = { domain: groups, paddingInner: 0.12 };
    if (encoding.color) Object.assign(encoding.color, bars ? byGroup : bySeries(colour));
    if (encoding.shape && bars) Object.assign(encoding.shape, byWhat);
    else if (encoding.shape) Object.assign(encoding.shape, bySeries(shape));
    if (far.size > 0 && layer.mark.type !== "text" && layer.data.name !== "experiment_far") layer.mark.clip = true;
    if (encoding.strokeDash) Object.assign(encoding.strokeDash, bySeries(dash));
    if (bars || layer.data.name === "experiment_hits") encoding.tooltip = tooltip;
  }
  if (bars) {
    const categories = new Set(records.map((d) => d.name)).size;
    const row = Math.max(LEAST_ROW, Math.min(SMALL_ROW, TALL / (categories * groups.length)));
    spec.height = Math.max(60, categories * (groups.length === 1 ? ROW : row * groups.length + 8));
  }
  return spec;
}
