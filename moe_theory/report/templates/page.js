"use strict";
(() => {
  const form = document.querySelector(".filters");
  const find = form.elements.namedItem("q");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const cards = [...document.querySelectorAll("details.card")];
  const folds = new Map([...document.querySelectorAll(".folded")].map((fold) => [fold, fold.open]));
  const counts = document.getElementById("shown");
  const allCounts = counts.textContent;

  const apply = () => {
    const facets = new Map();
    for (const box of boxes)
      if (box.checked) facets.set(box.name, (facets.get(box.name) ?? new Set()).add(box.value));
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let claims = 0, verdicts = 0;
    for (const card of cards) {
      const isFound = words.every((word) => card.dataset.search.includes(word));
      const marks = card.querySelectorAll(".mark");
      let count = 0;
      card.querySelectorAll(".verdict").forEach((verdict, place) => {
        const isOf = ([facet, values]) => verdict.dataset[facet].split("\n").some((value) => values.has(value));
        const isShown = isFound && [...facets].every(isOf);
        verdict.hidden = !isShown;
        marks[place].classList.toggle("other", !isShown);
        count += isShown;
      });
      card.hidden = count === 0;
      claims += count > 0;
      verdicts += count;
    }
    const isNarrowed = facets.size > 0 || words.length > 0;
    for (const [fold, wasOpen] of folds) {  // a search opens its hits. Without one, the initial state returns
      const isFound = fold.querySelector(".card:not([hidden])") !== null;
      fold.hidden = isNarrowed && !isFound;
      fold.open = isNarrowed ? isFound : wasOpen;
    }
    for (const chapter of document.querySelectorAll(".chapter"))
      chapter.hidden = !chapter.querySelector("details.card:not([hidden])");
    counts.textContent = isNarrowed ? `${claims} of ${cards.length} claims, ${verdicts} verdicts` : allCounts;
    document.getElementById("none").hidden = claims > 0;
  };

  const clear = () => {
    form.reset();
    apply();
  };

  const follow = () => {  // a link opens its target despite filters
    const hash = location.hash.slice(1);
    const target = hash && document.getElementById(decodeURIComponent(hash));
    if (!target || !target.closest("details")) return;
    if (target.closest("[hidden]")) clear();
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
    (target.tagName === "DETAILS" ? target.querySelector("summary") : target).focus({ preventScroll: true });
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  for (const button of document.querySelectorAll(".clear"))
    button.addEventListener("click", () => { clear(); find.focus(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });
  addEventListener("hashchange", follow);
  follow();
})();
