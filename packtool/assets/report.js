"use strict";
// A click on a column's head sorts the rows of each group by it; another click, the other way round.
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const found = Number.isNaN(Number(x)) || Number.isNaN(Number(y)) ? x.localeCompare(y) : x - y;
      return down ? -found : found;
    };
    for (const body of table.querySelectorAll("tbody:not(.title)")) body.append(...[...body.rows].sort(order));
  }));
}

// A table that is wider than its place says so.
const mark = () => {
  for (const place of document.querySelectorAll(".scroll")) {
    place.classList.toggle("wide", place.scrollWidth > place.clientWidth);
  }
};
mark();
addEventListener("resize", mark);
addEventListener("toggle", mark, true);
