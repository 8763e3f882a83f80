// Light or dark: as the system says, unless the button says otherwise.

import { byId } from "./dom.js";

const KEY = "genpool-theme";
const CHOICES = ["auto", "light", "dark"];

function apply(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  byId("theme-name").textContent = choice;
}

/** Lets the button change the theme. `repaint` is called after every change. */
export function startTheme(repaint) {
  let choice = CHOICES.includes(localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : "auto";
  apply(choice);
  byId("theme").addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    localStorage.setItem(KEY, choice);
    apply(choice);
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}
