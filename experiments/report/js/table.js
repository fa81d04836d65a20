// Sorting and filtering of the table of points; the table itself is plain HTML and works without this.
if (typeof document !== "undefined") (function () {
  "use strict";
  const table = document.getElementById("points");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);

  // Empty numbers sort last in both directions.
  function value(row, column, numeric) {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent;
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  }

  function compare(a, b, numeric) {
    if (numeric) return a - b;
    return a.localeCompare(b, "en", { numeric: true });
  }

  function sort(column) {
    const head = heads[column];
    const numeric = head.classList.contains("n");
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const keyed = rows.map((row, at) => ({ row, at, key: value(row, column, numeric) }));
    keyed.sort((x, y) => {
      if (x.key === null || y.key === null) return (x.key === null) - (y.key === null) || x.at - y.at;
      return (descending ? -1 : 1) * compare(x.key, y.key, numeric) || x.at - y.at;
    });
    body.append(...keyed.map((item) => item.row));
  }

  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));

  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const texts = rows.map((row) =>
    Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase());

  function apply() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      if (!row.hidden) ++count;
    });
    shown.textContent = count + " of " + rows.length;
  }

  filter.addEventListener("input", apply);
  apply();
})();
