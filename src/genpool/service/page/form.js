// The form: one sentence, two, or a query, and examples of each.

import { byId, check, element, fill } from "./dom.js";
import { EXAMPLES, textsOf } from "./examples.js";

const LABELS = {
  one: { first: "Sentence", run: "Explain" },
  two: { first: "First sentence", run: "Compare" },
  search: { first: "Query", run: "Search" },
};

/** Shows a state in the form. `go(changes)` is called when an example is pressed. */
export function showForm(state, go) {
  const { mode } = state;
  check("mode", mode);
  byId("first-label").textContent = LABELS[mode].first;
  byId("run").textContent = LABELS[mode].run;
  byId("second-field").hidden = mode !== "two";
  byId("first").value = state.first;
  byId("second").value = state.second;
  const chip = (example) => {
    const click = () => go({ ...textsOf(example), word: null, side: 0 });
    return element("button", { type: "button", class: "pill", on: { click } }, example.title);
  };
  fill(byId("examples"), ...EXAMPLES[mode].map(chip));
}
