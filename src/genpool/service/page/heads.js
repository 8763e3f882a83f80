// The words of a sentence under each head, one head, or two heads and their difference.

import { shareStyle, signedStyle } from "./colors.js";
import { byId, decimal, element, fill } from "./dom.js";
import { MEASURES, argmax, largest } from "./measures.js";
import { wordRow } from "./words.js";

const MANY_WORDS = 40; // a long text has low bars above its words

const name = (head) => `Head ${head + 1}`;

function line(title, note, row, kind = "") {
  return element(
    "div",
    { class: `head-line ${kind}` },
    element("div", { class: "head-name" }, element("strong", {}, title), element("span", {}, note)),
    row,
  );
}

function shadedLine(title, tokens, values, measure, style, select, kind) {
  const top = largest(values);
  const row = wordRow(tokens, {
    label: title,
    share: (index) => values[index] / top,
    style,
    describe: (index) => measure.format(values[index]),
    select,
  });
  return line(title, `most: ${tokens[argmax(values)].text}`, row, kind);
}

/** Returns each value as a part of the sum of all, so that two heads can be compared. */
function shares(values) {
  const sum = values.reduce((total, value) => total + value, 0) || 1;
  return values.map((value) => value / sum);
}

function differenceLine(tokens, [left, right], values, select) {
  const [first, second] = values.map(shares);
  const differences = first.map((share, index) => share - second[index]);
  const top = largest(differences);
  const describe = (index) => {
    const points = decimal(100 * Math.abs(differences[index]), 1);
    return `${points} points more in ${name(differences[index] < 0 ? right : left).toLowerCase()}`;
  };
  const share = (index) => differences[index] / top;
  const row = wordRow(tokens, { label: "Difference", share, style: signedStyle, describe, select });
  return line("Difference", "of the shares", row, "difference");
}

const swatch = (style, text) =>
  element("span", { class: "key" }, element("i", { class: "swatch", style }), text);

function legend(compared) {
  if (compared.length === 2) {
    const [left, right] = compared;
    return [
      swatch(signedStyle(0.75), `more in ${name(left).toLowerCase()}`),
      swatch(signedStyle(-0.75), `more in ${name(right).toLowerCase()}`),
    ];
  }
  const steps = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    element("i", { class: "swatch", style: shareStyle(share) }),
  );
  return [element("span", { class: "key" }, "least", ...steps, "most in its row")];
}

/** Shows the words of a sentence under the heads that the state chooses. */
export function showHeads(sentence, state, select) {
  const measure = MEASURES[state.by];
  const { tokens } = sentence;
  const cut = sentence.truncated ? ` Only the first ${tokens.length} words were read.` : "";
  byId("measure").textContent = measure.note + cut;
  if (!tokens.length) {
    fill(byId("words"), element("p", { class: "note" }, "This sentence has no words."));
    fill(byId("words-legend"));
    return;
  }
  const rows = measure.rows(sentence);
  const heads = state.heads.length ? state.heads : rows.map((_, head) => head);
  const compared = state.heads.length === 2;
  const lines = heads.map((head, place) => {
    const style = compared && place ? (share) => signedStyle(-share) : shareStyle;
    return shadedLine(name(head), tokens, rows[head], measure, style, select);
  });
  if (compared) {
    lines.push(
      differenceLine(
        tokens,
        heads,
        heads.map((head) => rows[head]),
        select,
      ),
    );
  } else if (state.by === "influence" && !state.heads.length) {
    const values = sentence.vector_influence;
    lines.unshift(shadedLine("Sentence", tokens, values, measure, shareStyle, select, "total"));
  }
  const isLong = tokens.length > MANY_WORDS;
  byId("words").classList.toggle("low", isLong);
  byId("words").classList.toggle("high", !isLong && lines.length <= 3);
  fill(byId("words"), ...lines);
  fill(byId("words-legend"), ...legend(compared ? heads : []));
}

/** Makes the buttons that choose heads. `choose(heads)` is called with none, one or two. */
export function makeHeadButtons(count, choose) {
  const pill = (text, head) =>
    element(
      "button",
      {
        type: "button",
        class: "pill",
        "data-head": head ?? "all",
        on: { click: () => choose(head) },
      },
      text,
    );
  fill(
    byId("heads"),
    pill("All heads", null),
    ...Array.from({ length: count }, (_, head) => pill(name(head), head)),
  );
}

/** Shows which heads are chosen. */
export function markHeadButtons(heads) {
  for (const button of byId("heads").children) {
    const head = button.dataset.head;
    const pressed = head === "all" ? !heads.length : heads.includes(Number(head));
    button.setAttribute("aria-pressed", pressed);
  }
}

/** Returns the heads that are chosen after a click: the last two that were clicked, or none. */
export function toggleHead(heads, head) {
  if (head === null) return [];
  if (heads.includes(head)) return heads.filter((other) => other !== head);
  return [...heads, head].slice(-2);
}
