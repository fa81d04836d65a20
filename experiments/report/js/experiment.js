// Fills the template of an experiment's chart: the layers that have data, titles, scales, colours, tooltips.
function experimentFigure(spec, chart, width) {
  "use strict";
  // Titles become parts of expressions, where a line cannot break.
  const words = (text) => text.replace(/[\u0000-\u001f\u2028\u2029]/g, " ");
  const xTitle = words(chart.x), yTitle = words(chart.y);
  const bars = chart.kind === "bars";
  const COLOURS = ["--float", "--int", "--mixed", "--other", "--block", "--muted", "--c6", "--c7", "--c8", "--c9", "--c10", "--c11", "--c12", "--c13"];
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"];
  // The same with a hole, for series that are marked so: the outline runs one way, the hole the other.
  const HOLLOW = {
    circle: "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0ZM0.65,0A0.65,0.65,0,1,0,-0.65,0A0.65,0.65,0,1,0,0.65,0Z",
    square: "M-1,-1H1V1H-1ZM-0.65,-0.65V0.65H0.65V-0.65Z",
    "triangle-up": "M0,-1.1L1.1,0.9L-1.1,0.9ZM0,-0.52L-0.64,0.64L0.64,0.64Z",
    diamond: "M0,-1.2L1.2,0L0,1.2L-1.2,0ZM0,-0.75L-0.75,0L0,0.75L0.75,0Z",
  };
  const DASHES = [[6, 4], [2, 3], [8, 3, 2, 3]];  // of lines that take a colour for the second time
  const LAW_DASHES = [[5, 4], [2, 3], [9, 3, 2, 3]];  // of predictions without a measurement
  const FEW = 16;  // names that can stand beside their points
  // An axis ends before records that stretch it by a factor: a twentieth of them, or one, and up to a third.
  const STRETCHED = 3, TORN = 10, LEAST_RECORDS = 6;
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
  const NEAR = 52 / Math.max(width - 60, 52);  // share of the axis that the value of a record on the edge takes
  const places = records.map((d) => along(d.x)), least = Math.min(...places), most = Math.max(...places);
  const far = clipFar();
  // Bars stand in a row for each group of series; what is predicted is a diamond on it.
  const groups = [...new Set(chart.series.map((s) => s.group))];
  const groupOf = new Map(chart.series.map((s) => [s.name, s.group]));
  for (const d of records) Object.assign(d, { group: groupOf.get(d.series), what: d.predicted ? "predicted" : "measured", kind: d.predicted ? "predicted" : groupOf.get(d.series) });
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
  const shapeOf = (s, full = SHAPES[s.colour % SHAPES.length]) => (s.hollow ? HOLLOW[full] ?? HOLLOW.circle : full);
  const shape = chart.series.map((s) => (dotted.has(s.name) ? shapeOf(s) : "stroke"));
  // Predictions of what is measured have its colour: one entry of the legend stands for their dashes.
  const said = [...chart.series.filter((s) => !beside(s)), ...chart.series.filter(beside).slice(0, 1)];
  const entry = (s) => words(beside(s) ? "predicted" : chart.series.some((other) => beside(other) && other.group === s.group) ? s.group : s.name);
  const entries = JSON.stringify(Object.fromEntries(said.filter((s) => s.name === words(s.name)).map((s) => [s.name, entry(s)])));
  const ENTRIES = 60;  // of a legend, at most
  const legend = names.length === 1 ? null : { columns: legendColumns(said.map(entry)), symbolStrokeWidth: 1.8, symbolSize: 110, symbolLimit: ENTRIES,
    ...(said.length < names.length && { values: said.map((s) => s.name), labelExpr: entries + "[datum.label] || datum.label" }),
    ...(dotted.size === 0 && { symbolType: "stroke" }) };
  const plain = (i) => "var(" + COLOURS[i % COLOURS.length] + ")";
  // Points of a logarithmic axis have a shape for each group, and what is predicted the diamond.
  const shaped = bars && chart.log_y, kinds = shaped && predicted.length > 0 && measured.length > 0 ? [...groups, "predicted"] : groups;
  const ofKind = (range) => ({ title: null, sort: null,
    legend: kinds.length === 1 ? null : { columns: legendColumns(kinds, 150), symbolStrokeWidth: 0, symbolLimit: ENTRIES,
      ...(shaped ? { symbolSize: 80 } : { symbolType: "square" }) },
    scale: { domain: kinds, range: kinds.map((name, i) => (name === "predicted" && i === groups.length ? range("predicted") : range(null, i, name))) } });
  const byGroup = ofKind((what, i, name) => (what ? "var(--ink)" : plain(chart.series.find((s) => s.group === name).colour)));
  const ROUND = SHAPES.filter((one) => one !== "diamond");
  const byShape = ofKind((what, i) => (what ? "diamond" : ROUND[i % ROUND.length]));
  const byWhat = { title: null, legend: predicted.length === 0 || measured.length === 0 ? null : { orient: "bottom", symbolSize: 70 },
    scale: { domain: ["measured", "predicted"], range: ["square", "diamond"] } };
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
    const scaled = (x) => (chart.log_y ? Math.log(x) : x), shifted = (x, by) => (chart.log_y ? Math.exp(Math.log(x) + by) : x + by);
    const fromZero = bars && !chart.log_y;
    const sorted = records.map((d) => d.y).sort((a, b) => a - b), last = sorted.length - 1;
    // The peak of a curve belongs to it.
    if (sorted.length < LEAST_RECORDS || (chart.kind === "line" && records.some((d) => d.dense))) return found;
    const ends = (from, to) => (fromZero ? [Math.min(0, sorted[from]), Math.max(0, sorted[to])] : [sorted[from], sorted[to]]);
    const length = ([low, high]) => scaled(high) - scaled(low);
    const whole = length(ends(0, last));
    for (let cut = 1; cut <= sorted.length / 3; ++cut) {
      const factor = cut <= Math.max(1, sorted.length / 20) ? STRETCHED : TORN;
      const low = length(ends(cut, last)) < length(ends(0, last - cut)), kept = low ? ends(cut, last) : ends(0, last - cut);
      if (!(length(kept) > 0) || whole < factor * length(kept)) continue;
      const margin = length(kept) / 10, edge = shifted(kept[low ? 0 : 1], low ? -margin : margin);
      found.domain = [shifted(kept[0], fromZero && kept[0] === 0 ? 0 : -margin), shifted(kept[1], fromZero && kept[1] === 0 ? 0 : margin)];
      const on = records.filter((one) => (low ? one.y < edge : one.y > edge)).sort((a, b) => along(a.x) - along(b.x));
      const ats = on.map((d) => (bars ? 0 : (along(d.x) - least) / (most - least || 1)));
      let end = -1;  // of the last value that is written
      for (const [i, d] of on.entries()) {
        const at = ats[i], right = bars ? !low : at > 0.5, [from, to] = right ? [at - NEAR, at] : [at, at + NEAR];
        // Not across another record, nor across another value.
        const room = from >= end && ats.every((other) => Math.abs(other - at) < NEAR / 20 || other < from || other > to);
        const text = (Math.abs(d.y) >= 1e6 ? d.y.toExponential(2) : String(Number(d.y.toPrecision(4)))).replace("-", "\u2212");
        Object.assign(d, { y: bars ? edge : shifted(edge, low ? margin / 3 : -margin / 3), arrow: low ? "triangle-down" : "triangle-up",
          said: bars || room ? text : "", align: right ? "right" : "left", dx: right ? -8 : 8, low: null, high: null });
        if (d.said) end = to;
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
    // Points that lie on each other stay visible.
    if (chart.kind === "points" && layer.data.name === "experiment_dots") layer.mark.opacity = 0.8;
    if (encoding.color) Object.assign(encoding.color, bars ? byGroup : bySeries(colour));
    if (shaped) for (const channel of [encoding.color, encoding.shape]) if (channel) channel.field = "kind";
    if (encoding.shape && bars) Object.assign(encoding.shape, shaped ? byShape : byWhat);
    else if (encoding.shape) Object.assign(encoding.shape, bySeries(shape));
    if (far.size > 0 && layer.mark.type !== "text" && layer.data.name !== "experiment_far") layer.mark.clip = true;
    if (encoding.strokeDash) Object.assign(encoding.strokeDash, bySeries(dash));
    if (bars || layer.data.name === "experiment_hits") encoding.tooltip = tooltip;
  }
  if (bars) {
    const categories = new Set(records.map((d) => d.name)).size;
    const row = Math.max(LEAST_ROW, Math.min(SMALL_ROW, TALL / (categories * groups.length)));
    spec.height = Math.max(60, categories * (groups.length === 1 ? Math.max(SMALL_ROW, Math.min(ROW, TALL / categories)) : row * groups.length + 8));
  }
  return spec;
}
