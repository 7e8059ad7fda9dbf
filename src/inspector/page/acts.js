/** Acts on one event, message or quarantined body: asked about first, and told of in words. */
import { ApiError, post } from "./api.js";
import { useLive } from "./live.js";
import { Dialog } from "./parts/dialog.js";
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";

/** @type {Record<import("../api.ts").ActRefusal, string>} */
const REFUSALS = {
  not_found: "It is no longer in the inbox.",
  in_progress: "A worker is handling it now. Try again in a moment.",
  body_pruned: "Its body is gone, so there is nothing to replay.",
  wrong_state: "It is no longer in that state: somebody else acted on it, or it was handled.",
  invalid_event: "The body is still no event to this version, or its secret does not vouch for it.",
};

/** What is said before each act: its verb, what it does, and whether it takes something away. @type {Record<string, [string, string, boolean?]>} */
export const ACTS = {
  replay: ["Replay", "Handlers get the event again, whatever came after it."],
  discard: ["Discard", "No handler gets the event any more. What waits behind it goes on.", true],
  unblock: ["Unblock", "The message goes on with its next event. The dead letter stays, and can still be replayed."],
  replay_quarantined: ["Replay", "The body is parsed again, as after an upgrade, and accepted if it is an event now."],
  discard_quarantined: ["Discard", "The body is set aside, and nobody is asked about it again.", true],
};

/** Null when it was done. @param {string} path @returns {Promise<{ reason: string, text: string } | null>} */
export async function attempt(path) {
  try {
    await post(path, {});
    return null;
  } catch (error) {
    return { reason: error instanceof ApiError ? error.code : "unknown", text: refusal(error) };
  }
}

/** Why something was not done, in plain words. @param {unknown} error @returns {string} */
export function refusal(error) {
  if (!(error instanceof ApiError)) return "Something went wrong on this page.";
  return Object.entries(REFUSALS).find(([reason]) => reason === error.code)?.[1] ?? error.message;
}

/** Lies over the page, so that nothing moves, and is there before it tells something: else it would not be read out. */
const said = document.createElement("output");
said.className = "said";
document.body.append(said);
const clear = () => {
  said.textContent = "";
};
addEventListener("click", clear, true);
addEventListener("hashchange", clear);

/** Tells a result, also by voice; it stays until the next click or view. @param {string} text */
export function say(text) {
  clear();
  // An equal text is only read again when it was gone before.
  requestAnimationFrame(() => {
    said.textContent = text;
  });
}

/** What whoever looks may do. @returns {{ canAct: boolean, canReveal: boolean }} */
export function useAccess() {
  const access = useLive().overview?.access;
  return { canAct: access === "act" || access === "reveal", canReveal: access === "reveal" };
}

/**
 * A button that opens a dialog. Without the right to act it can be reached, and says why it does nothing.
 *
 * @param {{ label: string, about?: string, danger?: boolean, disabled?: boolean, ask: (close: () => void) => unknown }} props
 */
export function Asking({ label, about, danger, disabled, ask }) {
  const { canAct } = useAccess();
  const [isOpen, setOpen] = useState(false);
  /** @type {import("./vendor/htm-preact.js").Ref<HTMLButtonElement | null>} */
  const button = useRef(null);
  useEffect(() => () => passFocusOn(button.current), []);
  const not = canAct ? null : "You may look here, but not act.";
  // A click in the dialog is none on the row that it belongs to.
  return html`<button type="button" ref=${button} class=${danger ? "act danger" : "act"}
      aria-disabled=${not || disabled ? "true" : null} title=${not} onClick=${() => (not ? say(not) : disabled || setOpen(true))}
    >${label}${about && html`<span class="sr-only"> ${about}</span>`}</button>
    ${isOpen && html`<span onClick=${(/** @type {Event} */ event) => event.stopPropagation()}>${ask(() => setOpen(false))}</span>`}`;
}

/** When a row goes away with the focus in it, the next one gets it. @param {HTMLElement | null} button */
function passFocusOn(button) {
  if (button === null || document.activeElement !== button) return;
  const row = button.closest("tr");
  const next = row?.nextElementSibling ?? row?.previousElementSibling;
  /** @type {HTMLElement | null | undefined} */
  const target = next?.querySelector("button.act") ?? document.querySelector("main");
  target?.focus({ preventScroll: true });
}

/**
 * One act: asked about, done, told.
 *
 * @typedef {object} ActProps
 * @property {string} path such as `api/events/7/replay`
 * @property {string} label
 * @property {string} [about] names the row for those who cannot see it
 * @property {string} confirm what will happen, in a sentence
 * @property {boolean} [danger]
 * @property {() => void} [onDone] called after a refusal too, for what is shown is no longer so
 * @param {ActProps} props
 */
export function ActButton(props) {
  return html`<${Asking} ...${props} ask=${(/** @type {() => void} */ close) => html`<${Confirm} ...${props} onClose=${close} />`} />`;
}

/** @param {{ act: string, of: string, about: string, onDone: () => void }} props `of` such as `events/7` */
export function RowAct({ act, of, about, onDone }) {
  const [label = act, confirm, danger] = ACTS[act] ?? [];
  return html`<${ActButton} ...${{ label, confirm, danger, about, onDone }} path=${`api/${of}/${label.toLowerCase()}`} /> `;
}

/** @param {ActProps & { onClose: () => void }} props */
function Confirm({ path, label, about, confirm, danger, onDone, onClose }) {
  const [isBusy, setBusy] = useState(false);
  const what = about ? `${label} ${about}` : label;
  const act = async () => {
    setBusy(true);
    const refused = await attempt(path);
    onClose();
    say(refused ? `${what}: not done. ${refused.text}` : `${what}: done.`);
    onDone?.();
  };
  return html`<${Dialog} title=${`${what}?`} onClose=${onClose}>
    <p>${confirm}</p>
    <p class="choices">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class=${danger ? "danger" : "primary"} disabled=${isBusy} onClick=${act}>${label}</button>
    </p>
  <//>`;
}
