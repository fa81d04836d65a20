// Places the names of a figure beside their points so that none covers another, a point or the frame. A long name loses its
// middle; one without room, or that would then read like another, is left out. With `key` none is cut or left out: points have
// numbers in their place, and the names of the numbers stand below the figure. `view` makes a Vega view of a specification
// with a width in pixels.
async function placeLabels(spec, width, view, key) {
  "use strict";
  const layer = (spec.layer || []).find((one) => one.name === "labels");
  if (!layer || !(spec.datasets.labels || []).length) return spec;
  const LIMIT = key ? 160 : 120, SIZE = 11, HEIGHT = 13;  // pixels of a name
  const RADIUS = 5;  // of a point
  const MARGIN = 12;  // of the figure
  const trial = JSON.parse(JSON.stringify(spec));
  Object.assign(trial, { width, autosize: { type: "fit-x", contains: "padding" } });
  const drawn = await view(trial);
  const x = drawn.scale("x"), y = drawn.scale("y");
  const [frameWidth, frameHeight] = [drawn.width(), drawn.height()];
  drawn.finalize();
  const { x: along, y: up, text } = layer.encoding;
  const place = (d) => [x(d[along.field]), y(d[up.field])];
  const measured = (words) => vega.textMetrics.width({ font: spec.font, fontSize: SIZE }, words);
  const points = (spec.datasets[layer.usermeta.points] || spec.datasets.labels).map(place).filter((at) => at.every(Number.isFinite));
  const taken = points.map(([px, py]) => [px - RADIUS, py - RADIUS, px + RADIUS, py + RADIUS]);
  for (const d of spec.datasets.experiment_far || []) {
    const [px, py] = place(d), wide = 16 + measured(d.said);
    taken.push([px - (d.align === "right" ? wide : RADIUS), py - HEIGHT / 2, px + (d.align === "right" ? RADIUS : wide), py + HEIGHT / 2]);
  }
  const free = (box) => box[0] >= 0 && box[1] >= 0 && box[2] <= frameWidth + 6 && box[3] <= frameHeight &&
    taken.every((other) => box[2] <= other[0] || other[2] <= box[0] || box[3] <= other[1] || other[3] <= box[1]);
  const SIDES = [["right", -6, -10], ["center", 0, -12], ["left", 6, -10], ["left", 8, 0], ["right", -8, 0], ["left", 6, 10],
    ["center", 0, 12], ["right", -6, 10]];
  function shortened(name, limit) {
    const letters = Array.from(name);
    let shown = name;
    for (let kept = letters.length - 1; measured(shown) > limit && kept > 0; --kept)
      shown = letters.slice(0, Math.ceil(kept / 2)).join("") + "…" + letters.slice(letters.length - Math.floor(kept / 2)).join("");
    return shown;
  }
  const placed = [];
  function put(d, shown) {
    const [px, py] = place(d), wide = measured(shown) + 2;
    for (const [align, dx, dy] of SIDES) {
      const left = px + dx - (align === "left" ? 0 : align === "right" ? wide : wide / 2);
      const box = [left, py + dy - HEIGHT / 2, left + wide, py + dy + HEIGHT / 2];
      if (!free(box)) continue;
      taken.push(box);
      placed.push({ ...d, [text.field]: shown, align, dx, dy });
      return true;
    }
    return false;
  }
  const names = new Set(spec.datasets.labels.map((d) => String(d[text.field])));
  const short = new Map(Array.from(names, (name) => [name, shortened(name, LIMIT)])), all = Array.from(short.values());
  const without = [], seen = new Set();
  for (const d of spec.datasets.labels) {
    const [px, py] = place(d), name = String(d[text.field]), shown = short.get(name);
    const where = name + " " + Math.round(px) + " " + Math.round(py);
    if (!Number.isFinite(px) || !Number.isFinite(py) || seen.has(where)) continue;
    seen.add(where);
    const alone = key ? shown === name : all.indexOf(shown) === all.lastIndexOf(shown);
    if (!alone || !put(d, shown)) without.push([d, name]);
  }
  const numbers = new Map();
  for (const [d, name] of key ? without : [])
    if (put(d, String(numbers.get(name) ?? numbers.size + 1)) && !numbers.has(name)) numbers.set(name, numbers.size + 1);
  const room = width - MARGIN, lines = [""];
  const words = Array.from(numbers, ([name, number]) => number + ":\u00a0" + name).join("; ").split(/(?<= )/);
  for (const word of words.flatMap((one) => measured(one) > room ? one.split(/(?<=,)/) : [one])) {
    const longer = lines[lines.length - 1] + word;
    if (measured(longer.trimEnd()) <= room) lines[lines.length - 1] = longer;
    else lines.push(shortened(word, room));
  }
  if (numbers.size > 0)
    spec.title = { text: lines.filter((line) => line), orient: "bottom", anchor: "start", offset: 8, fontSize: SIZE, fontWeight: 400, color: layer.mark.color };
  delete layer.mark.limit;
  spec.datasets.labels = placed;
  if (placed.length === 0) spec.layer = spec.layer.filter((one) => one !== layer);
  return spec;
}
