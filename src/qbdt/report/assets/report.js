"use strict";
(() => {
  const value = (row, column) => row.cells[column].textContent.trim();
  const number = (text) => {
    const found = text.replace(/−/g, "-").replace(/(\d)[ ,](?=\d{3})/g, "$1").match(/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/);
    return found ? parseFloat(found[0]) : NaN;
  };
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    if (!isNaN(x) && !isNaN(y)) return x - y;
    if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
    return a.localeCompare(b);
  };
  for (const head of document.querySelectorAll("thead th")) {
    head.querySelector("button").addEventListener("click", () => {
      const table = head.closest("table"), body = table.tBodies[0];
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows];
      rows.sort((a, b) => (up ? 1 : -1) * compare(value(a, head.cellIndex), value(b, head.cellIndex)));
      body.append(...rows);
    });
  }
  const large = document.getElementById("large");
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      const image = button.querySelector("img");
      large.querySelector("img").src = image.src;
      large.querySelector("img").alt = image.alt;
      large.querySelector("p").textContent = image.alt;
      large.showModal();
    });
  }
  document.getElementById("close").addEventListener("click", () => large.close());
  large.addEventListener("click", (event) => { if (event.target === large) large.close(); });
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll("details")) fold.open = true; });
})();
