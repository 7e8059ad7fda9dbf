/** The search: a message id, a reference or a whole number leads to its message. */
import { post } from "./api.js";
import { StateBadge } from "./parts/badge.js";
import { Dialog } from "./parts/dialog.js";
import { Empty, ErrorNote } from "./parts/error.js";
import { time } from "./parts/format.js";
import { Table } from "./parts/table.js";
import { go, href } from "./router.js";
import { html, useRef, useState } from "./vendor/htm-preact.js";

/** @typedef {import("../api.ts").Lookup} Lookup @typedef {import("../api.ts").LookupMatch} LookupMatch */

const FOUND = { message: "Message id", reference: "Reference", number: "Number" };

export function Search() {
  const [answer, setAnswer] = useState(/** @type {{ found: Lookup | null, error: unknown } | null} */ (null));
  /** @type {import("./vendor/htm-preact.js").Ref<HTMLInputElement | null>} */
  const input = useRef(null);
  /** @param {Event} event */
  const search = async (event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? "";
    if (text === "") return;
    try {
      /** @type {Lookup} */
      const found = await post("api/lookup", { text });
      const [only, other] = found.matches;
      if (only !== undefined && other === undefined && !found.more) go("message", only.lane);
      else setAnswer({ found, error: null });
    } catch (error) {
      setAnswer({ found: null, error });
    }
  };
  return html`<form class="search" role="search" onSubmit=${search}>
      <input id="search" ref=${input} type="search" autocomplete="off" spellcheck="false" maxlength="256"
        aria-label="Find a message by its id, reference or number" placeholder="Message id, reference or number ( / )" />
    </form>
    ${answer && html`<${Answer} ...${answer} onClose=${() => setAnswer(null)} />`}`;
}

/** @param {{ found: Lookup | null, error: unknown, onClose: () => void }} props */
function Answer({ found, error, onClose }) {
  const matches = found?.matches ?? [];
  return html`<${Dialog} title=${matches.length > 0 ? "Messages found" : "Nothing found"} onClose=${onClose}>
    <${ErrorNote} error=${error} />
    ${found !== null && matches.length === 0 && html`<${Empty}>No message has this id, reference or number. A number is looked up whole.<//>`}
    ${matches.length > 0 && html`<div onClick=${onClose}><${Table} caption="Messages found" columns=${COLUMNS} rows=${matches} keyOf=${laneOf} hrefOf=${hrefOf} /></div>`}
    ${found?.more && html`<p>There are more. Only the newest are listed.</p>`}
  <//>`;
}

/** @param {LookupMatch} match */
const laneOf = ({ lane }) => lane;
/** @param {LookupMatch} match */
const hrefOf = ({ lane }) => href("message", lane);

/** @type {readonly import("./parts/table.js").Column<LookupMatch>[]} */
const COLUMNS = [
  { name: "message", title: "Message", cell: ({ messageId }) => messageId || "no message id" },
  { name: "found", title: "Found by", cell: ({ found }) => FOUND[found], lesser: true },
  { name: "type", title: "Newest event", cell: ({ newest }) => newest.eventType, lesser: true },
  { name: "state", title: "State", cell: ({ newest }) => html`<${StateBadge} state=${newest.state} />` },
  { name: "time", title: "Accepted", cell: ({ newest }) => time(newest.acceptedAt) },
];
