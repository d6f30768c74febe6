"use strict";
(() => {
  const form = document.querySelector(".filters");
  const find = form.elements.namedItem("q");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const cards = [...document.querySelectorAll("details.card")];
  const rows = new Map([...document.querySelectorAll("tr[data-card]")].map((row) => [row.dataset.card, row]));
  const folds = new Map([...document.querySelectorAll(".folded")].map((fold) => [fold, fold.open]));
  let wasNarrowed = false;
  const all = document.getElementById("shown").textContent;

  const chosen = () => {
    const values = new Map();
    for (const box of boxes) if (box.checked) values.set(box.name, (values.get(box.name) ?? new Set()).add(box.value));
    return values;
  };

  const apply = () => {
    const values = [...chosen()];
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let claims = 0, verdicts = 0;
    for (const card of cards) {
      const isFound = words.every((word) => card.dataset.search.includes(word));
      const marks = card.querySelectorAll(".mark");
      let count = 0;
      card.querySelectorAll(".verdict").forEach((verdict, place) => {
        const isOf = ([facet, wanted]) => verdict.dataset[facet].split("\n").some((value) => wanted.has(value));
        const isShown = isFound && values.every(isOf);
        verdict.hidden = !isShown;
        marks[place].classList.toggle("other", !isShown);
        count += isShown;
      });
      card.hidden = count === 0;
      rows.get(card.id).hidden = card.hidden;
      claims += count > 0;
      verdicts += count;
    }
    const isNarrowed = values.length > 0 || words.length > 0;
    for (const [fold, wasOpen] of folds) {  // a search opens what it finds; without one all is as at first
      const isFound = fold.querySelector(".card:not([hidden])") !== null;
      fold.hidden = isNarrowed && !isFound;
      if (isNarrowed) fold.open ||= isFound;
      else if (wasNarrowed) fold.open = wasOpen;
    }
    wasNarrowed = isNarrowed;
    for (const part of document.querySelectorAll(".chapter, .chapter-box"))
      part.hidden = !part.querySelector("details.card:not([hidden]), tr[data-card]:not([hidden])");
    document.getElementById("shown").textContent = !isNarrowed ? all
      : `${claims} of ${cards.length} claims, ${verdicts} verdicts`;
    document.getElementById("none").hidden = claims > 0;
  };

  const remember = () => {
    const state = new URLSearchParams();
    if (find.value.trim()) state.set("q", find.value.trim());
    for (const [facet, wanted] of chosen()) for (const value of wanted) state.append(facet, value);
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  const clear = () => {
    find.value = "";
    for (const box of boxes) box.checked = false;
  };

  const reveal = (target) => {
    const isHidden = () => target.closest("[hidden]") !== null;
    if (isHidden()) { clear(); apply(); }
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
    (target.tagName === "DETAILS" ? target.querySelector("summary") : target).focus({ preventScroll: true });
  };

  const follow = () => {
    const hash = location.hash.slice(1);
    const target = hash && document.getElementById(decodeURIComponent(hash));
    if (target) { if (target.closest("details")) reveal(target); return; }
    if (!hash.includes("=")) return;
    const state = new URLSearchParams(hash);
    find.value = state.get("q") ?? "";
    for (const box of boxes) box.checked = state.getAll(box.name).includes(box.value);
    if (boxes.some((box) => box.checked && box.closest(".more"))) form.querySelector(".more").open = true;
    apply();
  };

  const copy = async (button) => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      if (!document.execCommand("copy")) return;
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { apply(); remember(); });
  for (const button of document.querySelectorAll(".clear"))
    button.addEventListener("click", () => { clear(); apply(); remember(); find.focus(); });
  for (const tile of document.querySelectorAll(".tile"))
    tile.addEventListener("click", () => document.getElementById("cards").scrollIntoView());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) follow();
    if (event.target.matches(".copy")) copy(event.target);
  });
  addEventListener("hashchange", follow);

  addEventListener("beforeprint", () => {
    for (const image of document.images) image.loading = "eager";
    for (const fold of folds.keys()) fold.open = true;
  });
  apply();
  follow();
})();
