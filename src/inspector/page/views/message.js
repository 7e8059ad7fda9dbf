/** One message: whether the customer got it, why not, and everything that happened on the way. */
import { ActButton, refusal, say, useAccess } from "../acts.js";
import { get, post } from "../api.js";
import { Legend } from "../drawing/legend.js";
import { statusOf, summaryOf } from "../drawing/story.js";
import { StoryList } from "../drawing/story-list.js";
import { Timeline } from "../drawing/timeline.js";
import { useData } from "../live.js";
import { Dialog } from "../parts/dialog.js";
import { ErrorNote } from "../parts/error.js";
import { href } from "../router.js";
import { html, useState } from "../vendor/htm-preact.js";
import { EventDetail } from "./event-detail.js";

/** @typedef {import("../../api.ts").Message} Message */

/** @param {{ id: number | null, params: Readonly<Record<string, string>> }} props */
export function MessageView({ id, params }) {
  /** @type {{ data: Message | null, error: unknown, reload: () => void }} */
  const { data, error, reload } = useData((signal) => get(`api/messages/${id}`, signal), [id]);
  const [revealed, setRevealed] = useState(/** @type {Message | null} */ (null));
  const note = html`<${ErrorNote} error=${error} onRetry=${reload} />`;
  if (data === null)
    return html`<div class="head"><h1>Message</h1></div>${note}<div class="panel timeline-space"></div>`;
  const known = revealed ?? data;
  const asked = Number(params.event);
  const event = data.events.find((one) => one.id === asked) ?? data.events.at(-1);
  const drawn = data.drawing.events.find((one) => one.id === event?.id);
  /** Not one more step back for each event looked at. @param {number} event */
  const select = (event) => location.replace(href("message", id, { event }));
  return html`${note}
    <${Head} message=${data} known=${known} reload=${reload} onReveal=${setRevealed} />
    <section class="panel" aria-labelledby="story">
      <h2 id="story">What happened</h2>
      <${Timeline} drawing=${data.drawing} cursor=${data.cursor} selected=${event?.id ?? null} onSelect=${select} />
      <${Legend} />
    </section>
    ${event && drawn && html`<${EventDetail} event=${known.events.find((one) => one.id === event.id) ?? event} drawn=${drawn} now=${data.drawing.now} reload=${reload} />`}
    <${StoryList} lane=${data.lane} drawing=${data.drawing} />`;
}

/** @param {{ message: Message, known: Message, reload: () => void, onReveal: (next: Message | null) => void }} props */
function Head({ message, known, reload, onReveal }) {
  const { lane, messageId, status, cursor, drawing } = message;
  const path = `api/messages/${lane}`;
  const facts = {
    "API client": message.apiClientId || "–",
    "Other party": known.peer ?? "–",
    Reference: known.externalReference ?? "–",
    Status: `${statusOf(message)}${cursor === null ? "" : `, cursor ${cursor}`}`,
  };
  return html`<div class="head">
      <h1>Message <code>${messageId}</code></h1>
      <button type="button" onClick=${() => copy(messageId)}>Copy id</button>
      <${Reveal} path=${`${path}/reveal`} isRevealed=${known.revealed} onReveal=${onReveal} />
      ${status === "blocked" && html`<${ActButton} path=${`${path}/unblock`} label="Unblock" confirm="What waits behind the dead letter is handled. The dead letter stays." onDone=${reload} />`}
      ${status === "gap" && html`<${ActButton} path=${`${path}/release`} label="Release gap" confirm="The missing events are no longer waited for: if they come, they are late." onDone=${reload} />`}
    </div>
    <p class="summary ${drawing.end.state}">${summaryOf(drawing, failureCode(message))}</p>
    <dl class="facts columns">${Object.entries(facts).map(([name, fact]) => html`<div key=${name}><dt>${name}</dt><dd>${fact}</dd></div>`)}</dl>`;
}

/** @param {string} text */
function copy(text) {
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
  copied.then(
    () => say("The message id is copied."),
    () => say("The browser does not let this page copy. Mark the id, and copy it."),
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

/** @param {{ path: string, isRevealed: boolean, onReveal: (next: Message | null) => void }} props */
function Reveal({ path, isRevealed, onReveal }) {
  const { canReveal } = useAccess();
  const [isAsking, setAsking] = useState(false);
  if (!canReveal) return null;
  if (isRevealed) return html`<button type="button" onClick=${() => onReveal(null)}>Hide numbers and texts</button>`;
  const close = () => setAsking(false);
  const reveal = () => {
    close();
    post(path, {}).then(onReveal, (error) => say(`Not revealed. ${refusal(error)}`));
  };
  return html`<button type="button" onClick=${() => setAsking(true)}>Reveal numbers and texts</button>
    ${
      isAsking &&
      html`<${Dialog} title="Reveal numbers and texts?" onClose=${close}>
        <p>The audit keeps that you looked at this message.</p>
        <p class="choices"><button type="button" onClick=${close}>Cancel</button><button type="button" class="primary" onClick=${reveal}>Reveal</button></p>
      <//>`
    }`;
}
