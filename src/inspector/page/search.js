/** The search: a message id, a reference or a whole number leads to its message. */
import { post } from "./api.js";
import { StateBadge } from "./parts/badge.js";
import { Dialog } from "./parts/dialog.js";
import { ErrorNote } from "./parts/error.js";
import { clockTime, shortId } from "./parts/format.js";
import { Table } from "./parts/table.js";
import { awaited, go, href } from "./router.js";
import { html, useState } from "./vendor/htm-preact.js";

/** @import { Lookup, LookupMatch } from "../api.ts" */

/** @type {readonly import("./parts/table.js").Column<LookupMatch>[]} */
const COLUMNS = [
  ["text", "Message", ({ messageId }) => shortId(messageId || "no id")],
  ["found lesser", "Found by", ({ found }) => found],
  ["state", "Newest event", ({ newest }) => html`<${StateBadge} state=${newest.state} />`],
  ["time lesser", "Accepted", ({ newest }) => clockTime(newest.acceptedAt)],
];

export function Search() {
  const [found, setFound] = useState(/** @type {Lookup | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const close = () => {
    setFound(null);
    setError(null);
  };
  const search = async (/** @type {Event & { currentTarget: HTMLFormElement }} */ event) => {
    event.preventDefault();
    const text = event.currentTarget.querySelector("input")?.value.trim();
    if (!text) return;
    try {
      /** @type {Lookup} */
      const answer = await awaited(post("api/lookup", { text }));
      const [only, other] = answer.matches;
      if (only && !other) go("message", only.lane);
      else setFound(answer);
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<form class="search" role="search" onSubmit=${search}>
      <input id="search" type="search" autocomplete="off" spellcheck=${false} maxlength="256" aria-label="Message id, reference or whole number"
        placeholder="Message id, reference or number ( / )" onFocus=${select} />
    </form>
    ${
      (found || error) &&
      html`<${Dialog} title="Search" onClose=${close}>
      <${ErrorNote} error=${error} />
      ${found?.matches.length === 0 && html`<p role="status">No message has this id, reference or number. A number is found only whole.</p>`}
      ${found?.matches[0] && html`<div onClick=${close}><${Table} caption="Messages found" columns=${COLUMNS} rows=${found.matches} hrefOf=${hrefOf} /></div>`}
      ${found?.more && html`<p>There are more; these are the newest.</p>`}
    <//>`
    }`;
}

/** So that the next search is not added to the one before. */
const select = (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) => currentTarget.select();
const hrefOf = (/** @type {LookupMatch} */ { lane }) => href("message", lane);
