// Places the names of a figure beside their points so that none covers another, a point or the frame; a name without room is
// left out. `view` makes a Vega view of a specification with a width in pixels.
async function placeLabels(spec, width, view) {
  "use strict";
  const layer = (spec.layer || []).find((one) => one.name === "labels");
  if (!layer || !(spec.datasets.labels || []).length) return spec;
  const LIMIT = 120, SIZE = 11, HEIGHT = 13;  // pixels of a name
  const RADIUS = 5;  // of a point
  const trial = JSON.parse(JSON.stringify(spec));
  Object.assign(trial, { width, autosize: { type: "fit-x", contains: "padding" } });
  const drawn = await view(trial);
  const x = drawn.scale("x"), y = drawn.scale("y");
  const [frameWidth, frameHeight] = [drawn.width(), drawn.height()];
  drawn.finalize();
  const { x: along, y: up, text } = layer.encoding;
  const place = (d) => [x(d[along.field]), y(d[up.field])];
  const points = (spec.datasets[layer.usermeta.points] || spec.datasets.labels).map(place).filter((at) => at.every(Number.isFinite));
  const taken = points.map(([px, py]) => [px - RADIUS, py - RADIUS, px + RADIUS, py + RADIUS]);
  for (const d of spec.datasets.experiment_far || []) {
    const [px, py] = place(d), wide = 16 + vega.textMetrics.width({ font: spec.font, fontSize: SIZE }, d.said);
    taken.push([px - (d.align === "right" ? wide : RADIUS), py - HEIGHT / 2, px + (d.align === "right" ? RADIUS : wide), py + HEIGHT / 2]);
  }
  const free = (box) => box[0] >= 0 && box[1] >= 0 && box[2] <= frameWidth + 6 && box[3] <= frameHeight &&
    taken.every((other) => box[2] <= other[0] || other[2] <= box[0] || box[3] <= other[1] || other[3] <= box[1]);
  const SIDES = [["right", -6, -10], ["center", 0, -12], ["left", 6, -10], ["left", 8, 0], ["right", -8, 0], ["left", 6, 10],
    ["center", 0, 12], ["right", -6, 10]];
  const placed = [], said = new Set();
  for (const d of spec.datasets.labels) {
    const [px, py] = place(d), name = String(d[text.field]);
    const wide = Math.min(LIMIT, vega.textMetrics.width({ font: spec.font, fontSize: SIZE }, name)) + 2;
    const key = name + " " + Math.round(px) + " " + Math.round(py);
    if (!Number.isFinite(px) || !Number.isFinite(py) || said.has(key)) continue;
    for (const [align, dx, dy] of SIDES) {
      const left = px + dx - (align === "left" ? 0 : align === "right" ? wide : wide / 2);
      const box = [left, py + dy - HEIGHT / 2, left + wide, py + dy + HEIGHT / 2];
      if (!free(box)) continue;
      taken.push(box);
      said.add(key);
      placed.push({ ...d, align, dx, dy });
      break;
    }
  }
  spec.datasets.labels = placed;
  if (placed.length === 0) spec.layer = spec.layer.filter((one) => one !== layer);
  return spec;
}
