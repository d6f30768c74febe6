// An address of a claim opens what it is folded into, in browsers that do not do so themselves.
const reveal = () => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = place && place.closest("details:not([open])");
  if (folded) {
    folded.open = true;
    place.scrollIntoView();
  }
};
addEventListener("hashchange", reveal);
addEventListener("DOMContentLoaded", reveal);
addEventListener("beforeprint", () => document.querySelectorAll("details.mt-claims").forEach((each) => (each.open = true)));
