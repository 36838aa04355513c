// The filter: what does not have all the words that are typed fades from plots and leaves tables. Texts of the page are
// read and compared here, and never become elements or code.
"use strict";
const form = document.getElementById("filter");
const field = form.elements.words;
const told = document.getElementById("filtered");
const places = new Map();

// With a space between cells, and between the lines of one.
function text(part) {
  return part.childNodes.length ? [...part.childNodes].map(text).join(" ") : part.textContent;
}

// A place is a table or a plot; a part is a row or a mark of it, which names somebody by its text.
for (const table of document.querySelectorAll("main table")) {
  places.set(table.parentElement, [...table.tBodies[0].rows].map(row => [row, text(row).toLowerCase()]));
}
for (const figure of document.querySelectorAll("main figure")) {
  const titles = [...figure.querySelectorAll("svg title")];
  places.set(figure, titles.map(title => [title.parentElement, title.textContent.toLowerCase()]));
}

const names = new Set();
for (const cell of document.querySelectorAll("#clients td.text, [id^=family] td.text")) {
  const name = text(cell).trim();
  if (/[a-z.]/i.test(name) && !/[\s=]/.test(name) && names.size < 500) names.add(name);
}
document.getElementById("names").append(...[...names].sort().map(name => new Option(name, name)));

function questions(shown) {
  const articles = shown.map(place => place.closest("article")).filter(Boolean);
  return [...new Set(articles.map(article => article.id))].map(id => {
    const link = document.createElement("a");
    link.href = `#${id}`;
    link.textContent = id.replace("question-", "");
    return link;
  });
}

function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = [];
  for (const [place, parts] of places) {
    let count = 0;
    for (const [part, says] of parts) {
      const has = words.every(word => says.includes(word));
      part.classList.toggle("filtered", !has);
      count += has;
    }
    place.classList.toggle("without", count === 0 && words.length > 0);
    if (count) shown.push(place);
  }
  form.classList.toggle("on", words.length > 0);
  if (!words.length) return told.replaceChildren();
  const plots = shown.filter(place => place.tagName === "FIGURE").length;
  const links = questions(shown);
  told.replaceChildren(`In ${plots} plots and ${shown.length - plots} tables`);
  if (links.length) told.append("; tables of questions ", ...links.flatMap((link, i) => i ? [", ", link] : [link]));
  told.append(".");
}

field.addEventListener("input", filter);
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
form.hidden = false;
if (field.value) filter();
