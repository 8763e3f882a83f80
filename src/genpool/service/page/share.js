// The link to what is shown.

import { byId } from "./dom.js";

const NOTICE_MILLISECONDS = 2500;

/** Copies the link of a state, given as the part of the address from "#". */
export async function copyLink(hash) {
  history.replaceState(null, "", hash);
  const button = byId("share");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Link copied";
  } catch {
    // Browsers allow it over HTTPS and on this machine only.
    button.textContent = "Copy it from the address bar";
  }
  setTimeout(() => {
    button.textContent = "Copy link";
  }, NOTICE_MILLISECONDS);
}
