// Opens report pages in headless Chromium: no errors, no network, every chart drawn, sorting, filtering and lists work.
// Arguments: FULL.html BASELINE.html HOSTILE.html TEXT.html EXPERIMENT.html ANSWER.html LOST.html. Exit 77 = skipped, because no browser or no charts in this build.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Browser, findBrowser } from "./browser.mjs";

const FOLDER = new URL("../../../experiments/report/charts/", import.meta.url);
const META = new Map(readdirSync(FOLDER).filter((name) => name.endsWith(".vl.json"))
  .map((name) => [name.replace(".vl.json", ""), JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")).usermeta]));
const ALL = [...META.keys()].sort();
// What ordinary rows fill; those of a text; those of an experiment with one layer at a time.
const CHARTS = ALL.filter((name) => !META.get(name).quiet);
const TEXT = ALL.filter((name) => name === "figure" || (CHARTS.includes(name) && !META.get(name).replaced_by));
const EXPERIMENT = ALL.filter((name) => ["sensitivity-sqnr", "sensitivity-top1"].includes(name) ||
  (CHARTS.includes(name) && !["bits-by-bits", "exponent-by-mantissa"].includes(name)));
// What the sample experiment draws itself, in a report with rows and in one without.
const ANSWER = Array(5).fill("experiment");
const SKIPPED = 77;

const MARKS = `Array.from(document.querySelectorAll(".plot"), (plot) => ({
  name: plot.dataset.chart,
  marks: plot.querySelectorAll("svg .role-mark > *").length,
  empty: Array.from(plot.querySelectorAll("svg .role-mark")).filter((layer) => layer.childElementCount === 0).length,
  width: plot.querySelector("svg")?.getBoundingClientRect().width ?? 0 }))`;
const DRAWN = `Array.from(document.querySelectorAll(".plot")).every((plot) => plot.dataset.drawn)`;
const CELLS = (column) => `Array.from(document.querySelectorAll("#points tbody tr:not([hidden])"),
  (row) => row.cells[${column}].dataset.v ?? row.cells[${column}].textContent)`;
const COLUMN = (title) => `Array.from(document.querySelectorAll("#points thead th"))
  .findIndex((th) => th.textContent.startsWith(${JSON.stringify(title)}))`;

async function load(browser, file) {
  browser.events = [];
  await browser.open(pathToFileURL(file).href);
  await browser.until(DRAWN);
}

function assertQuiet(browser) {
  assert.deepEqual(browser.complaints().filter((text) => !text.includes("[\"WARN\"")), []);
}

async function assertChartsDrawn(browser, names) {
  const plots = await browser.evaluate(MARKS);
  assert.deepEqual(plots.map((plot) => plot.name).sort(), [...names].sort());
  for (const plot of plots) {
    assert.ok(plot.marks > 0, plot.name + " has no marks");
    assert.equal(plot.empty, 0, plot.name + " has layers without marks");
    assert.ok(plot.width > 100, plot.name + " is " + plot.width + " pixels wide");
  }
}

// Labels of one axis never repeat. Axes of panels stand in groups of their own.
const REPEATED = `Array.from(document.querySelectorAll(".plot svg .role-axis-label"), (group) =>
  Array.from(group.querySelectorAll("text"), (text) => text.textContent).filter((text) => text !== ""))
  .filter((labels) => new Set(labels).size !== labels.length)`;

async function choose(browser, id, index) {
  await browser.evaluate(`{ const list = document.getElementById("${id}"); list.selectedIndex = ${index};
    list.dispatchEvent(new Event("change")); }`);
}

async function testSorting(browser) {
  const column = await browser.evaluate(COLUMN("Top-1"));
  const click = () => browser.evaluate(`document.querySelectorAll("#points thead button")[${column}].click()`);
  const numbers = async () => (await browser.evaluate(CELLS(column))).map(Number);
  const before = await numbers();
  await click();
  assert.deepEqual(await numbers(), [...before].sort((a, b) => a - b));
  assert.equal(await browser.evaluate(`document.querySelectorAll("#points thead th")[${column}].ariaSort`), "ascending");
  await click();
  assert.deepEqual(await numbers(), [...before].sort((a, b) => b - a));
  assert.equal(await browser.evaluate(`document.querySelectorAll("#points thead [aria-sort]").length`), 1);
}

async function testFiltering(browser) {
  const total = await browser.evaluate(`document.querySelectorAll("#points tbody tr").length`);
  await browser.evaluate(`document.getElementById("filter").focus()`);
  await browser.send("Input.insertText", { text: "INT8 exact" });
  const unit = await browser.evaluate(COLUMN("Unit"));
  const units = await browser.evaluate(CELLS(unit));
  assert.ok(units.length > 0 && units.length < total);
  assert.ok(units.every((name) => name.includes("exact")));
  assert.equal(await browser.evaluate(`document.getElementById("shown").textContent`), units.length + " of " + total);
  await browser.evaluate(`{ const box = document.getElementById("filter"); box.value = ""; box.dispatchEvent(new Event("input")); }`);
  assert.equal((await browser.evaluate(CELLS(unit))).length, total);
}

async function testLists(browser) {
  const marks = (name) => browser.evaluate(`document.querySelectorAll('[data-chart="${name}"] svg .role-mark > *').length`);
  const said = (name) => browser.evaluate(`document.querySelector('[data-say="${name}"]').textContent`);
  const every = await marks("predicted");
  assert.equal(await said("unit"), "All units");
  await choose(browser, "unit", 1);
  await browser.until(`document.querySelectorAll('[data-chart="predicted"] svg .role-mark > *').length < ${every}`);
  assert.match(await said("unit"), /^Unit /);
  await choose(browser, "unit", 0);
  await browser.until(`document.querySelectorAll('[data-chart="predicted"] svg .role-mark > *').length === ${every}`);
  const point = await said("point");
  await choose(browser, "point", 0);
  assert.notEqual(await said("point"), point);
  await choose(browser, "tensor", 1);
  const lines = await marks("histogram");
  await choose(browser, "format", 9);
  await browser.until(`document.querySelectorAll('[data-chart="histogram"] svg .role-mark > *').length !== ${lines}`);
  assert.match(await said("tensor"), /activation.*under int/);
}

// Of many bars with predictions: no taller than a screen, and what is predicted has another shape.
async function testManyBars(browser) {
  const plot = `document.querySelector('[data-chart="experiment"][data-number="4"] svg')`;
  const height = await browser.evaluate(plot + ".getBoundingClientRect().height");
  assert.ok(height > 200 && height < 600, "many bars are " + height + " pixels high");
  const shapes = await browser.evaluate(`Array.from(${plot}.querySelectorAll(".mark-symbol.role-mark path"), (mark) => mark.getAttribute("d"))`);
  const counts = new Map();
  for (const shape of shapes) counts.set(shape, (counts.get(shape) ?? 0) + 1);
  const numbers = [...counts.values()].sort((a, b) => b - a);
  assert.equal(numbers[0], 5 * 7, "predicted points share a shape of their own");
  assert.deepEqual(numbers.slice(1), Array(numbers.length - 1).fill(5 * 7 / (numbers.length - 1)), "each group has a shape");
  assert.ok(numbers.length > 2, "groups are told by colour alone");
}

// Every figure is saved as an SVG that stands alone: well-formed, without names of the page, letters of at least 8 points.
async function testSaving(browser) {
  await browser.evaluate(`{ window.saved = []; const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return make.call(URL, blob); }; }`);
  const figures = await browser.evaluate(`document.querySelectorAll("figure button.save:not([hidden])").length`);
  assert.equal(figures, await browser.evaluate(`document.querySelectorAll(".plot svg").length`));
  await browser.evaluate(`document.querySelectorAll("figure button.save:not([hidden])").forEach((button) => button.click())`);
  await browser.until(`window.saved.length === ${figures}`);
  const wrong = await browser.evaluate(`window.saved.flatMap((text) => {
    const svg = new DOMParser().parseFromString(text, "image/svg+xml"), out = [];
    if (svg.querySelector("parsererror")) return ["not well-formed: " + text.slice(0, 200)];
    const root = svg.documentElement, box = root.getAttribute("viewBox").split(" ").map(Number);
    const inches = root.getAttribute("width").match(/^([0-9.]+)in$/)[1];
    if (inches !== "7") out.push("width " + inches);
    if (/var\\(--|color-mix|<script|<image|href=/.test(text.replace(/xmlns:xlink/g, ""))) out.push("not self-contained");
    for (const letters of svg.querySelectorAll("text")) {
      const points = parseFloat(letters.getAttribute("font-size")) * inches * 72 / box[2];
      if (points < 8) out.push(points + " points: " + letters.textContent);
    }
    return out;
  })`);
  assert.deepEqual(wrong, []);
}

/** The page at two widths and in both colour schemes; `use` is what else is done with the wide one. */
async function testLooks(browser, file, names, use = () => {}) {
  for (const width of [1280, 400]) {
    await browser.size(width);
    await load(browser, file);
    await assertChartsDrawn(browser, names);
    assert.deepEqual(await browser.evaluate(REPEATED), []);
    assert.ok(await browser.evaluate("document.documentElement.scrollWidth") <= width, "the page is wider than " + width);
    if (width === 1280) await use();
    assertQuiet(browser);
  }
  const colour = () => browser.evaluate("getComputedStyle(document.body).backgroundColor");
  await browser.scheme("light");
  const light = await colour();
  await browser.scheme("dark");
  assert.notEqual(await colour(), light);
}

const [full, baseline, hostile, text, experiment, answer, lost] = process.argv.slice(2);
const command = findBrowser();
if (!command) {
  console.log("skipped: no Chromium (set CHROMIUM to its command)");
  process.exit(SKIPPED);
}
const browser = await Browser.start(command);
let code = 0;
try {
  // A build without charting libraries writes no data for them.
  if (!readFileSync(full, "utf8").includes('id="report-data"')) {
    console.log("skipped: this build has no charting libraries");
    code = SKIPPED;
  } else {
    await testLooks(browser, full, CHARTS, async () => {
      await testSorting(browser);
      await testFiltering(browser);
      await testLists(browser);
      await testSaving(browser);
    });
    await testLooks(browser, text, TEXT);
    await testLooks(browser, experiment, [...EXPERIMENT, ...ANSWER]);
    await testLooks(browser, answer, ANSWER);
    await testManyBars(browser);
    // A sweep of points that all lose more than two points, one of them NaN: it is drawn, an empty figure says why.
    await load(browser, lost);
    assert.match(await browser.evaluate(`document.querySelector('[data-chart="change"]').textContent`),
      /Nothing to draw.*every configuration loses two points or more/);
    assert.ok(await browser.evaluate(`document.querySelectorAll('[data-chart="sqnr"] svg [aria-label*="not finite"]').length`) > 0);
    assert.deepEqual(await browser.evaluate(REPEATED), []);
    assertQuiet(browser);
    await load(browser, baseline);
    assertQuiet(browser);
    await load(browser, hostile);
    await assertChartsDrawn(browser, [...CHARTS, ...ANSWER]);
    assert.equal(await browser.evaluate("window.hacked"), undefined);
    assert.equal(await browser.evaluate(`document.querySelectorAll("img").length`), 0);
    await testSaving(browser);
    assertQuiet(browser);
    console.log(ALL.length + " charts drawn at 1280 and 400 pixels; sorting, filtering and lists work");
  }
} catch (error) {
  console.error(error);
  code = 1;
} finally {
  await browser.close();
}
process.exit(code);
