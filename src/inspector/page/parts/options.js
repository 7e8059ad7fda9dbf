/** What a `select` offers. */
import { html } from "../vendor/htm-preact.js";

/** @param {string} words one an option, with spaces between them @param {string} [chosen] */
export function optionsOf(words, chosen) {
  return words.split(" ").map((word) => html`<option value=${word} selected=${word === chosen}>${word}</option>`);
}
