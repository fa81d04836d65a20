// A figure as one SVG of a printed width: light colours in place of the page's names, letters of at least 8 points.
async function paperFigure(figures, figure, inches, style, words, view) {
  "use strict";
  const DOTS = 96;  // pixels of an inch
  const colours = new Map(Array.from(style.slice(0, style.indexOf("}")).matchAll(/--([a-z0-9]+):\s*(#[0-9a-f]{6})/g), (found) => [found[1], found[2]]));
  const mixed = (first, share, second) => "#" + [1, 3, 5].map((at) => Math.round(share / 100 * parseInt(first.slice(at, at + 2), 16) +
    (1 - share / 100) * parseInt(second.slice(at, at + 2), 16)).toString(16).padStart(2, "0")).join("");
  // Data keep what they say: a name may look like a colour.
  const KEPT = new Set(["datasets", "domain", "title", "field", "description"]);
  function resolved(node, key) {
    if (KEPT.has(key)) return node;
    if (Array.isArray(node)) return node.map((item) => resolved(item));
    if (node && typeof node === "object") return Object.fromEntries(Object.entries(node).map(([name, item]) => [name, resolved(item, name)]));
    if (typeof node !== "string") return node;
    return node.replace(/var\(--([a-z0-9]+)\)/g, (all, name) => colours.get(name) ?? all)
      .replace(/color-mix\(in srgb, (#[0-9a-f]{6}) (\d+)%, (#[0-9a-f]{6})\)/g, (all, first, share, second) => mixed(first, Number(share), second));
  }
  const config = { ...resolved(figures.config), font: "Helvetica, Arial, sans-serif", background: "#ffffff" };
  const wide = Math.round(inches * DOTS);
  let svg = "", size = [0, 0];
  // Panels and long names may need more room than the width leaves at first.
  for (let width = wide, tries = 0; tries < 4; ++tries) {
    const spec = resolved(figures.specification(figure, width));
    if (!spec.facet) Object.assign(spec, { width, autosize: { type: "fit-x", contains: "padding" } });
    const drawn = await view(await placeLabels(spec, width, (trial) => view(trial, config), true), config);
    svg = await drawn.toSVG();
    drawn.finalize();
    size = svg.match(/viewBox="0 0 ([\d.]+) ([\d.]+)"/).slice(1).map(Number);
    if (size[0] <= wide) break;
    width -= Math.ceil(size[0] - wide);
  }
  const text = (words) => words.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, " ")
    .replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
  const box = [Math.max(wide, size[0]), size[1]];
  return '<?xml version="1.0" encoding="UTF-8"?>\n' + svg
    .replace(/^<svg[^>]*>/, (open) => open.replace(/ width="[^"]*"/, ' width="' + inches + 'in"').replace(/ height="[^"]*"/, ' height="' + (box[1] / box[0] * inches).toFixed(4) + 'in"')
      .replace(/ viewBox="[^"]*"/, ' viewBox="0 0 ' + box.join(" ") + '"') + "<title>" + text(words.title) + "</title><desc>" + text(words.caption) + "</desc>")
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, " ");
}
