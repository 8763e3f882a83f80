// Words as shaded buttons. A row of words is one stop of the Tab key; arrow keys move in it.

import { element } from "./dom.js";

/** Returns whether there is white space, in the sentence, after a token. */
const isSpaced = (tokens, index) => tokens[index + 1]?.start !== tokens[index].end;

/**
 * Returns a row of words.
 * @param {object[]} tokens tokens of the sentence
 * @param {object} options
 *   label: name of the row for screen readers
 *   share(index): value of a word, from -1 to 1; drawn as a bar
 *   style(share): CSS properties of a value
 *   describe(index): what its colour means, for screen readers and as a tooltip
 *   select(index): called when a word is pointed at or focused
 */
export function wordRow(tokens, { label, share, style, describe, select }) {
  const row = element("div", { class: "words", role: "group", "aria-label": label });
  tokens.forEach((token, index) => {
    const description = describe(index);
    row.append(
      element(
        "button",
        {
          type: "button",
          // Begin and end tokens, which are in no text, are set apart.
          class: `word${isSpaced(tokens, index) ? " spaced" : ""}${token.start < 0 ? " edge" : ""}`,
          tabindex: index ? -1 : 0,
          "data-index": index,
          "aria-label": `${token.text}, ${description}`,
          title: description,
          style: { ...style(share(index)), "--share": Math.abs(share(index)).toFixed(3) },
          on: {
            pointerenter: () => select(index),
            focus: () => select(index),
            click: () => select(index),
          },
        },
        token.text,
      ),
    );
  });
  return row;
}

/** Marks the buttons of a word in all rows below a node. */
export function markWord(node, index) {
  for (const word of node.querySelectorAll(".word")) {
    word.classList.toggle("marked", Number(word.dataset.index) === index);
  }
}

function focusWord(row, index) {
  const words = [...row.querySelectorAll(".word")];
  if (!words.length) return;
  const target = words[Math.min(Math.max(index, 0), words.length - 1)];
  for (const word of words) word.tabIndex = word === target ? 0 : -1;
  target.focus();
}

/** Lets arrow keys, Home and End move between the words of a node's rows. */
export function listenToArrows(node) {
  node.addEventListener("keydown", (event) => {
    const word = event.target.closest?.(".word");
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    const row = word.parentElement;
    const rows = [...node.querySelectorAll(".words")];
    const index = Number(word.dataset.index);
    const moves = {
      ArrowLeft: [row, index - 1],
      ArrowRight: [row, index + 1],
      Home: [row, 0],
      End: [row, Infinity],
      ArrowUp: [rows[rows.indexOf(row) - 1], index],
      ArrowDown: [rows[rows.indexOf(row) + 1], index],
    };
    const [target, place] = moves[event.key] ?? [];
    if (!target) return;
    event.preventDefault();
    focusWord(target, place);
  });
}
