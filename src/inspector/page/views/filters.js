/** The filters of the live list. What is written counts once its field is left, or Enter pressed. */
import { fromAddress, toAddress } from "../parts/filter.js";
import { optionsOf } from "../parts/options.js";
import { go } from "../router.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";

/** @typedef {Readonly<Record<string, string>>} Texts @typedef {[name: string, title: string, kind?: string]} Field @typedef {{ currentTarget: HTMLInputElement }} Typing */

/** @type {Field[]} */
const FIELDS = [
  ["state", "State", "pending done handled unhandled dead late discarded"],
  ["type", "Event type"],
  ["message", "Message id"],
  ["error", "Error code"],
];
/** @type {Field[]} */
const MORE = [
  ["reference", "Reference"],
  ["peer", "Number, whole"],
  ["late", "Late", "yes no"],
  ["conflict", "Conflict", "yes no"],
  ["from", "Accepted from", "datetime-local"],
  ["to", "Accepted to", "datetime-local"],
];

/** @param {{ params: Texts }} props */
export function Filters({ params }) {
  const given = JSON.stringify(params);
  const [draft, setDraft] = useState(/** @type {Texts} */ ({}));
  // Fields of dates are not made before somebody wants them: they would keep the first rows waiting.
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setDraft({}), [given]);
  const apply = (/** @type {Texts} */ texts) => {
    const news = Object.entries(texts).map(([name, text]) => [name, toAddress(name, text.trim())]);
    go("events", null, { ...params, ...Object.fromEntries(news) });
  };
  const fieldOf = (/** @type {Field} */ [name, title, kind = "text"]) => {
    const textOf = (/** @type {Typing} */ { currentTarget }) => ({
      [name]: currentTarget.value,
    });
    const value = draft[name] ?? fromAddress(params[name] ?? "");
    const use = (/** @type {Typing} */ event) => apply(textOf(event));
    const write = (/** @type {Typing} */ event) => setDraft({ ...draft, ...textOf(event) });
    return html`<label key=${name}>${title}
      ${
        kind.includes(" ")
          ? html`<select name=${name} value=${value} onChange=${use}><option value="">any</option>${optionsOf(kind, value)}</select>`
          : html`<input name=${name} type=${kind} value=${value} maxlength="256" autocomplete="off" spellcheck=${false} onInput=${write} onChange=${use} />`
      }
    </label>`;
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    apply(draft);
  };
  const used = MORE.filter(([name]) => params[name]).length;
  // The one form with more than one button: outside of forms a button submits nothing, and needs no type.
  return html`<form class="filters" onSubmit=${submit}>
    ${FIELDS.map(fieldOf)}
    <button type="submit">Filter</button>
    <button type="button" aria-disabled=${given === "{}" ? "true" : null} onClick=${() => go("events")}>Clear</button>
    <details onToggle=${(/** @type {{ currentTarget: HTMLDetailsElement }} */ { currentTarget }) => setOpen(currentTarget.open)}>
      <summary>More filters${used > 0 && ` (${used} set)`}</summary>${isOpen && html`<div>${MORE.map(fieldOf)}</div>`}
    </details>
  </form>`;
}
