// Small helpers to build elements. Text is always set as text, never parsed as HTML.

/** Returns the element with an id. */
export const byId = (id) => document.getElementById(id);

/**
 * Returns a new element.
 * @param {string} name tag name
 * @param {object} properties attributes; `on` has event listeners, `style` CSS properties
 * @param {...(Node|string|null)} children nodes or text; null and false are left out
 */
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (key === "style") {
      // Not the attribute: the page's Content-Security-Policy allows no inline styles.
      for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    } else {
      node.setAttribute(key, value === true ? "" : value);
    }
  }
  node.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false),
  );
  return node;
}

/** Replaces everything inside an element. */
export function fill(node, ...children) {
  node.replaceChildren(...children.filter(Boolean));
}

/** Returns a value with a fixed number of decimals and a real minus sign. */
export const decimal = (value, digits = 2) => value.toFixed(digits).replace("-", "\u2212");

/** Returns a share of one as a percentage, with a decimal near 0 and near 100. */
export function percent(share) {
  const isNearAnEnd = share < 0.0995 || (share >= 0.99 && share < 0.9995);
  return `${(100 * share).toFixed(isNearAnEnd ? 1 : 0)}\u202f%`;
}

/** Checks the radio button of a group that has a value. */
export function check(group, value) {
  for (const radio of document.querySelectorAll(`input[name="${group}"]`)) {
    radio.checked = radio.value === String(value);
  }
}
