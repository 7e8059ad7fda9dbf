/** All that is known of one event: when, by which attempts, and its body. */
import { ActButtons } from "../acts.js";
import { fateOf } from "../drawing/story.js";
import { StateBadge } from "../parts/badge.js";
import { duration, time } from "../parts/format.js";
import { html } from "../vendor/htm-preact.js";

/** @typedef {import("../../api.ts").DrawnEvent} DrawnEvent */

/** @param {{ of: Readonly<Record<string, unknown>>, isColumn?: boolean }} props in as many columns as there is room for, or in one */
export function Facts({ of, isColumn }) {
  return html`<dl class=${isColumn ? "facts" : "facts columns"}>${Object.entries(of).map(([name, fact]) => html`<div><dt>${name}</dt><dd>${fact}</dd></div>`)}</dl>`;
}

/** @param {{ event: import("../../api.ts").MessageEvent, drawn: DrawnEvent, now: number, reload: () => void }} props */
export function EventDetail({ event, drawn, now, reload }) {
  const { id, state } = event;
  const [, trace = "–", parent = "–"] = event.trace?.split("-") ?? [];
  const about = `${event.sequence} ${event.eventType}`;
  const facts = {
    State: html`<${StateBadge} ...${event} /> It ${fateOf(drawn, now)}.`,
    Occurred: time(event.occurredAt),
    "Signed, verified": time(event.signedAt),
    Accepted: time(event.acceptedAt),
    "Handed out": time(event.startedAt),
    Finished: time(event.finishedAt),
    Duplicates: `${event.duplicates}${event.conflict ? ", one with other content" : ""}`,
    "Trace id": trace,
    "Parent id": parent,
    Identity: event.identity ?? "shown with the body",
    Digest: event.digest ?? "shown with the body",
  };
  const applies = { replay: state !== "pending" && event.hasBody, discard: state === "pending" || state === "dead" };
  const acts = Object.entries(applies).flatMap(([act, isOne]) => (isOne ? [act] : []));
  return html`<section class="panel">
    <div class="head">
      <h2>Event ${about}</h2>
      <${ActButtons} key=${id} ...${{ acts, about }} of=${`api/events/${id}`} onDone=${reload} />
    </div>
    <${Facts} of=${facts} />
    <h3>Attempts: ${drawn.attemptCount}${drawn.attempts.length === 0 && ", none failed"}</h3>
    <ol>${drawn.attempts.map(
      ({ attempt, at, durationMs, errorCode, error }) =>
        html`<li value=${attempt}>${time(at)} after ${duration(durationMs)}: <code>${errorCode}</code> ${error}</li>`,
    )}</ol>
    <${Body} event=${event} />
  </section>`;
}

/** @param {{ event: Pick<import("../../api.ts").MessageEvent, "body" | "bytes"> }} props */
export function Body({ event: { body, bytes } }) {
  if (body === null) return html`<h3>Body: no longer kept</h3>`;
  const [kind, text] =
    "masked" in body
      ? ["numbers and texts masked", JSON.stringify(body.masked, null, 2)]
      : "text" in body
        ? ["exactly as it came", body.text]
        : ["binary, in base64", body.base64];
  return html`<h3>Body: ${bytes} bytes, ${kind}</h3><pre class="panel" tabindex="0" role="region" aria-label="Body">${text}</pre>`;
}
