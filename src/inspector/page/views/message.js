/** One message: whether the customer got it, why not, and everything that happened on the way. */
import { ActButtons, Asking, say, sayWhy, useAccess } from "../acts.js";
import { get, post } from "../api.js";
import { Legend } from "../drawing/legend.js";
import { cursorOf, statusOf, summaryOf } from "../drawing/story.js";
import { StoryList } from "../drawing/story-list.js";
import { Timeline } from "../drawing/timeline.js";
import { useData } from "../live.js";
import { Confirm } from "../parts/dialog.js";
import { ErrorNote } from "../parts/error.js";
import { href } from "../router.js";
import { html, useRef, useState } from "../vendor/htm-preact.js";
import { EventDetail, Facts } from "./event-detail.js";

/** @typedef {import("../../api.ts").Message} Message */

/** What makes a message go on, by how it stands. @type {Readonly<Record<string, string[]>>} */
const GOES_ON = { blocked: ["unblock"], gap: ["release"] };

/** @param {{ id: number | null, params: Readonly<Record<string, string>> }} props */
export function MessageView({ id, params }) {
  /** @type {{ data: Message | null, error: unknown, reload: () => void }} */
  const { data, error, reload } = useData((signal) => get(`api/messages/${id}`, signal), [id]);
  const [revealed, setRevealed] = useState(/** @type {Message | null} */ (null));
  const seen = useRef(0);
  const note = html`<${ErrorNote} error=${error} onRetry=${reload} />`;
  if (data === null)
    return html`<div class="head"><h1>Message</h1></div>${note}<div class="panel timeline-space"></div>`;
  const { drawing, events, lane } = data;
  const known = revealed ?? data;
  const asked = events.find((event) => event.id === (Number(params.event) || seen.current)) ?? events.at(-1);
  // What comes while it is read takes nothing away.
  seen.current = asked?.id ?? 0;
  const {
    body = null,
    digest = null,
    identity = null,
  } = known.events.find(({ id }) => id === asked?.id) ?? asked ?? {};
  const drawn = drawing.events.find((event) => event.id === asked?.id);
  // Not one more step back for each event looked at.
  const onSelect = (/** @type {number} */ event) => location.replace(href("message", id, { event }));
  return html`${note}
    <${Head} message=${data} known=${known} reload=${reload} onReveal=${setRevealed} />
    <section class="panel">
      <h2>What happened</h2>
      <${Timeline} ...${{ drawing, onSelect }} cursor=${cursorOf(data)} selected=${asked?.id ?? null} />
      <${Legend} />
    </section>
    ${asked && drawn && html`<${EventDetail} ...${{ drawn, reload }} event=${{ ...asked, body, digest, identity }} now=${drawing.now} />`}
    <${StoryList} lane=${lane} drawing=${drawing} />`;
}

/** @param {{ message: Message, known: Message, reload: () => void, onReveal: (next: Message | null) => void }} props */
function Head({ message, known, reload, onReveal }) {
  const { lane, status, drawing } = message;
  const { messageId } = known;
  const facts = {
    "API client": message.apiClientId || "–",
    "Other party": known.peer ?? "–",
    Reference: known.externalReference ?? "–",
    Status: [statusOf(message), cursorOf(message)].filter(Boolean).join(", "),
  };
  return html`<div class="head">
      <h1>Message <code>${messageId || "no id"}</code></h1>
      ${messageId && html`<button onClick=${() => copy(messageId)}>Copy id</button>`}
      <${Reveal} lane=${lane} isRevealed=${known.revealed} onReveal=${onReveal} />
      <${ActButtons} acts=${GOES_ON[status] ?? []} of=${`api/messages/${lane}`} onDone=${reload} />
    </div>
    <p class="summary"><b>${summaryOf(drawing, failureCode(message))}</b></p>
    <${Facts} of=${facts} />`;
}

/** @param {string} text */
function copy(text) {
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
  copied.then(
    () => say("Copied."),
    () => say("The browser does not let this page copy: mark the id instead."),
  );
}

/** Why it failed, as the masked body of `message.failed` tells. @param {Message} message @returns {string | null} */
function failureCode({ events }) {
  const body = events.findLast(({ eventType }) => eventType === "message.failed")?.body;
  /** @type {any} */
  const masked = body && "masked" in body ? body.masked : null;
  const code = masked?.data?.error?.code;
  return typeof code === "string" ? code : null;
}

/** @param {{ lane: number, isRevealed: boolean, onReveal: (next: Message | null) => void }} props */
function Reveal({ lane, isRevealed, onReveal }) {
  const { canReveal } = useAccess();
  if (!canReveal) return null;
  if (isRevealed) return html`<button onClick=${() => onReveal(null)}>Hide numbers and texts</button>`;
  const ask = (/** @type {() => void} */ close) => {
    const reveal = () => {
      close();
      post(`api/messages/${lane}/reveal`, {}).then(onReveal, sayWhy);
    };
    return html`<${Confirm} title="Reveal numbers and texts?" verb="Reveal" onClose=${close} onConfirm=${reveal}>The audit keeps that you looked at this message.<//>`;
  };
  return html`<${Asking} label="Reveal numbers and texts" ask=${ask} />`;
}
