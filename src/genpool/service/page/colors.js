// Colours that the colour-blind can tell apart: one hue that changes in lightness for shares,
// blue against orange for signs, and cividis for pictures.

const LIGHT = {
  shares: ["#ffffff", "#d6e5f8", "#8fb8e8", "#3f7fce", "#124a99"],
  positive: ["#ffffff", "#d6e5f8", "#8fb8e8", "#3f7fce", "#124a99"],
  negative: ["#ffffff", "#fde4cc", "#f7b57a", "#dd7a1f", "#9a4a00"],
};
const DARK = {
  shares: ["#18202b", "#1d3a61", "#2c66a8", "#62a1ee", "#c6dfff"],
  positive: ["#18202b", "#1d3a61", "#2c66a8", "#62a1ee", "#c6dfff"],
  negative: ["#18202b", "#4f3014", "#95591b", "#e59540", "#ffd9ae"],
};
const CIVIDIS = [
  "#00224e",
  "#123570",
  "#3b496c",
  "#575d6d",
  "#707173",
  "#8a8678",
  "#a59c74",
  "#c3b369",
  "#e1cc55",
  "#fee838",
];

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Returns the colour [red, green, blue] at a position from 0 to 1 of a list of hex colours. */
export function interpolate(stops, position) {
  const place = Math.min(Math.max(position, 0), 1) * (stops.length - 1);
  const left = Math.min(Math.floor(place), stops.length - 2);
  const [from, to] = [channels(stops[left]), channels(stops[left + 1])];
  return from.map((value, channel) => Math.round(value + (to[channel] - value) * (place - left)));
}

/** Returns the relative luminance (WCAG 2) of a colour [red, green, blue]. */
export function luminance(rgb) {
  const [red, green, blue] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Returns black or white, whichever has more contrast on a colour (at least 4.5 to 1). */
export const inkOn = (rgb) => (luminance(rgb) > 0.179 ? "#000000" : "#ffffff");

/** Returns whether the page is shown in dark colours. */
export function isDark() {
  const choice = document.documentElement.dataset.theme;
  return choice ? choice === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const css = (rgb) => `rgb(${rgb.join(" ")})`;

function shade(name, position) {
  const rgb = interpolate((isDark() ? DARK : LIGHT)[name], position);
  return { "background-color": css(rgb), color: inkOn(rgb) };
}

/** Returns the CSS properties of a share from 0 to 1. */
export const shareStyle = (share) => shade("shares", share);

/** Returns the CSS properties of a value from -1 (orange) to 1 (blue). */
export const signedStyle = (value) => shade(value < 0 ? "negative" : "positive", Math.abs(value));

/** Returns 256 colours [red, green, blue], from dark blue to yellow. */
export const cividis = () =>
  Array.from({ length: 256 }, (_, byte) => interpolate(CIVIDIS, byte / 255));
