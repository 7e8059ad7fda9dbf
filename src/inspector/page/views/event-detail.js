/** All that is known of one event: when, by which attempts, and its body. */
import { ActButton } from "../acts.js";
import { fateOf } from "../drawing/story.js";
import { StateBadge } from "../parts/badge.js";
import { duration, time } from "../parts/format.js";
import { html } from "../vendor/htm-preact.js";

/** @typedef {import("../../api.ts").MessageEvent} MessageEvent */

/** @param {{ event: MessageEvent, drawn: import("../../api.ts").DrawnEvent, now: number, reload: () => void }} props */
export function EventDetail({ event, drawn, now, reload }) {
  const { id, sequence, eventType, state, hasBody } = event;
  const [, trace, parent] = event.trace?.split("-") ?? [];
  const facts = {
    State: html`<${StateBadge} ...${event} /> It ${fateOf(drawn, now)}.`,
    Occurred: time(event.occurredAt),
    "Signed (verified)": time(event.signedAt),
    Accepted: time(event.acceptedAt),
    "Handed out": time(event.startedAt),
    Finished: time(event.finishedAt),
    Duplicates: `${event.duplicates}${event.conflict ? ", one with other content" : ""}`,
    "Trace id": html`<code>${trace ?? "–"}</code>`,
    "Parent id": html`<code>${parent ?? "–"}</code>`,
    Identity: html`<code>${event.identity}</code>`,
    Digest: html`<code>${event.digest}</code>`,
  };
  const about = `${sequence} ${eventType}`;
  return html`<section class="panel event-detail" aria-labelledby="event">
    <div class="head">
      <h2 id="event">Event ${about}</h2>
      ${state !== "pending" && hasBody && html`<${ActButton} key="replay" path=${`api/events/${id}/replay`} label="Replay" about=${about} confirm="It is handed to its handlers again, whatever its place." onDone=${reload} />`}
      ${(state === "pending" || state === "dead") && html`<${ActButton} key="discard" path=${`api/events/${id}/discard`} label="Discard" about=${about} danger confirm="It is set aside, and what waits behind it goes on." onDone=${reload} />`}
    </div>
    <dl class="facts columns">${Object.entries(facts).map(([name, fact]) => html`<div key=${name}><dt>${name}</dt><dd>${fact}</dd></div>`)}</dl>
    <${Attempts} drawn=${drawn} />
    <${Body} event=${event} />
  </section>`;
}

/** @param {{ drawn: import("../../api.ts").DrawnEvent }} props */
function Attempts({ drawn: { attempts, attemptCount } }) {
  return html`<h3>Attempts: ${attemptCount}${attempts.length === 0 ? ", none failed" : ""}</h3>
    <ol class="attempts">${attempts.map(
      ({ attempt, at, durationMs, errorCode, error }) => html`<li key=${`${at} ${attempt}`} value=${attempt}>
        ${time(at)} after ${duration(durationMs)}: <code>${errorCode}</code> ${error}
      </li>`,
    )}</ol>`;
}

/** @param {{ event: MessageEvent }} props */
export function Body({ event: { body, bytes } }) {
  if (body === null) return html`<h3>Body</h3><p class="muted">No longer kept.</p>`;
  const [kind, text] =
    "masked" in body
      ? ["numbers and texts masked", JSON.stringify(body.masked, null, 2)]
      : "text" in body
        ? ["exactly as it came", body.text]
        : ["binary, in base64", body.base64];
  return html`<h3>Body: ${bytes} bytes, ${kind}</h3><pre tabindex="0" aria-label="Body">${text}</pre>`;
}
