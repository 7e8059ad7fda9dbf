/** Acts on one event, message or quarantined body: asked about first, and told of in words. */
import { ApiError, post } from "./api.js";
import { useLive } from "./live.js";
import { Dialog } from "./parts/dialog.js";
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";

/** @typedef {import("../api.ts").ActRefusal} ActRefusal */

/** @type {Record<ActRefusal, string>} */
const REFUSALS = {
  not_found: "It is no longer in the inbox.",
  in_progress: "A worker is handling it now. Try again in a moment.",
  body_pruned: "Its body is gone, so there is nothing to replay.",
  wrong_state: "It is no longer in that state: somebody else acted on it, or it was handled.",
  invalid_event: "The body is still no event to this version, or its secret does not vouch for it.",
};

/** Why something was not done, in plain words. @param {unknown} error @returns {string} */
export function refusal(error) {
  if (!(error instanceof ApiError)) return "Something went wrong on this page.";
  return Object.entries(REFUSALS).find(([reason]) => reason === error.code)?.[1] ?? error.message;
}

/** Null when it was done. @param {string} path @returns {Promise<{ reason: string, text: string } | null>} */
export async function attempt(path) {
  try {
    await post(path, {});
    return null;
  } catch (error) {
    return { reason: error instanceof ApiError ? error.code : "unknown", text: refusal(error) };
  }
}

/** @type {((text: string) => void) | undefined} */
let tell;

/** Tells a result to everybody, also by voice: it stays until the next one, or until it is closed. @param {string} text */
export function say(text) {
  tell?.(text);
}

/** It lies over the page, so that nothing moves, and is there before it tells something: else it would not be read out. */
function makeRegion() {
  const said = document.createElement("p");
  said.setAttribute("role", "status");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.hidden = true;
  const box = document.createElement("div");
  box.className = "said";
  box.append(said, close);
  document.body.append(box);
  /** @type {EventTarget | null} */
  let before = null;
  close.addEventListener("focus", (event) => {
    before = event.relatedTarget;
  });
  close.addEventListener("click", () => {
    said.textContent = "";
    close.hidden = true;
    if (before instanceof HTMLElement) before.focus();
  });
  return (/** @type {string} */ text) => {
    said.textContent = "";
    close.hidden = false;
    // An equal text is only read again when it was gone before.
    requestAnimationFrame(() => {
      said.textContent = text;
    });
  };
}

if (typeof document !== "undefined") tell = makeRegion();

/** What whoever looks may do. @returns {{ canAct: boolean, canReveal: boolean }} */
export function useAccess() {
  const access = useLive().overview?.access;
  return { canAct: access === "act" || access === "reveal", canReveal: access === "reveal" };
}

export const NO_ACTS = "You may look here, but not act.";

/**
 * A button that opens something: it can be reached, and says why, when acting is not allowed. When it goes away while it is
 * focused, the focus goes to the next of its list.
 *
 * @param {{ label: string, about?: string, danger?: boolean, disabled?: boolean, onPress: () => void }} props
 */
export function ActTrigger({ label, about, danger, disabled, onPress }) {
  const { canAct } = useAccess();
  /** @type {import("./vendor/htm-preact.js").Ref<HTMLButtonElement | null>} */
  const button = useRef(null);
  useEffect(() => () => passFocusOn(button.current), []);
  return html`<button
    type="button"
    ref=${button}
    class=${danger ? "act danger" : "act"}
    disabled=${disabled}
    aria-disabled=${canAct ? null : "true"}
    title=${canAct ? null : NO_ACTS}
    onClick=${() => (canAct ? onPress() : say(NO_ACTS))}
  >${label}${about ? html`<span class="sr-only"> ${about}</span>` : null}</button>`;
}

/** @param {HTMLElement | null} button */
function passFocusOn(button) {
  if (button === null || document.activeElement !== button) return;
  const row = button.closest("tr, li");
  const next = row?.nextElementSibling ?? row?.previousElementSibling;
  /** @type {HTMLElement | null | undefined} */
  const target = next?.querySelector("button.act") ?? document.querySelector("main h1");
  if (target?.tagName === "H1") target.tabIndex = -1;
  target?.focus({ preventScroll: true });
}

/**
 * One act: asked about, done, told.
 *
 * @param {{ path: string, label: string, about?: string, confirm: string, danger?: boolean, onDone?: () => void }} props
 *   `path` below the page, such as `api/events/7/replay`; `about` names the row for those who cannot see it; `confirm` says what
 *   will happen.
 */
export function ActButton({ path, label, about, confirm, danger, onDone }) {
  const [isOpen, setOpen] = useState(false);
  return html`<${ActTrigger} label=${label} about=${about} danger=${danger} onPress=${() => setOpen(true)} />
    ${isOpen && html`<${ActDialog} ...${{ path, label, about, confirm, danger, onDone }} onClose=${() => setOpen(false)} />`}`;
}

/** @param {{ path: string, label: string, about?: string, confirm: string, danger?: boolean, onDone?: () => void, onClose: () => void }} props */
function ActDialog({ path, label, about, confirm, danger, onDone, onClose }) {
  const [isBusy, setBusy] = useState(false);
  const what = about ? `${label} ${about}` : label;
  const act = async () => {
    setBusy(true);
    const result = await attempt(path);
    onClose();
    say(result === null ? `${what}: done.` : `${what}: not done. ${result.text}`);
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
