// An address of a claim opens what it is folded into, in browsers that do not do so themselves.
const reveal = () => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  place.scrollIntoView();
};

// Formulas that are wider than their place are set smaller, to two thirds at most; beyond, they scroll.
const fit = () => {
  for (const place of document.querySelectorAll(".formula, .mt-formula")) {
    place.style.fontSize = "";
    const share = place.clientWidth / place.scrollWidth;
    if (share < 1) place.style.fontSize = `${Math.max(share * 0.98, 0.66) * parseFloat(getComputedStyle(place).fontSize)}px`;
  }
};

addEventListener("hashchange", reveal);
addEventListener("resize", fit);
document.addEventListener("toggle", fit, true);
addEventListener("DOMContentLoaded", () => {
  reveal();
  fit();
});
addEventListener("beforeprint", () => document.querySelectorAll("details.mt-statement").forEach((each) => (each.open = true)));
