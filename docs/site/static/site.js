// Opened from a folder, a browser lets no page read another: results are shown without excerpts then.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
// On a telephone a table that is too wide is shown row by row, each cell behind the name of its column.
const stack = () => document.querySelectorAll(".table-wrapper > table").forEach((table) => {
  const names = [...table.querySelectorAll("thead tr > *")].map((cell) => cell.textContent.trim());
  table.classList.remove("stacked");
  table.classList.toggle("stacked", innerWidth <= 600 && table.parentElement.scrollWidth > table.parentElement.clientWidth);
  table.querySelectorAll("tbody tr").forEach((row) => [...row.children].forEach((cell, place) => {
    if (place && names[place] && cell.textContent.trim()) cell.dataset.column = names[place];
  }));
});
addEventListener("DOMContentLoaded", stack);
addEventListener("resize", stack);
