// Errors of the service, shown where they are read, with the way out.

import { rememberKey } from "./api.js";
import { byId, element, fill } from "./dom.js";

function keyForm(retry) {
  const field = element("input", {
    type: "password",
    id: "key",
    autocomplete: "off",
    required: true,
  });
  const submit = (event) => {
    event.preventDefault();
    rememberKey(field.value);
    retry();
  };
  return element(
    "form",
    { class: "key-form", on: { submit } },
    element("label", { for: "key" }, "API key"),
    field,
    element("button", { type: "submit", class: "primary" }, "Use this key"),
  );
}

/** Shows an error. `retry` is offered where the same request may succeed later. */
export function showProblem(error, retry) {
  const temporary = error.status === 0 || error.status === 408 || error.status >= 500;
  fill(
    byId("problem"),
    element("p", {}, error.message),
    error.status === 401 && keyForm(retry),
    temporary &&
      element("button", { type: "button", class: "quiet", on: { click: retry } }, "Try again"),
  );
  byId("problem").hidden = false;
}

/** Removes the error. */
export function hideProblem() {
  byId("problem").hidden = true;
  fill(byId("problem"));
}
