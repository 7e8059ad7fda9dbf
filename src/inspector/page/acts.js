/** Acts on one event, message or quarantined body: asked about first, and told of in words. */
import { ApiError, post } from "./api.js";
import { useLive } from "./live.js";
import { Confirm } from "./parts/dialog.js";
import { BROKEN } from "./parts/error.js";
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";

/** Its verb, what it does, and whether it takes something away. @type {Record<string, [string, string, boolean?]>} */
export const ACTS = {
  replay: ["Replay", "Handlers get the event again, whatever came after it."],
  discard: ["Discard", "No handler gets the event any more. What waits behind it goes on.", true],
  unblock: ["Unblock", "The message goes on with its next event. The dead letter stays, and can still be replayed."],
  release: ["Release gap", "What is missing is no longer waited for. If it comes, it is late."],
  replay_quarantined: ["Replay", "The body is parsed again, as after an upgrade, and accepted if it is an event now."],
  discard_quarantined: ["Discard", "The body is set aside, and can no longer be replayed.", true],
};

/** @type {Record<import("../api.ts").ActRefusal, string>} */
const REFUSALS = {
  not_found: "It is no longer in the inbox.",
  in_progress: "A worker is handling it now. Try again in a moment.",
  body_pruned: "Its body is no longer kept.",
  wrong_state: "It is no longer in that state: somebody else acted on it, or it was handled.",
  invalid_event: "The body is still no event to this version, or its secret does not vouch for it.",
};

/** Whether it is about what was acted on: the next one may go well. @param {ApiError} error */
export const isRefusal = ({ code }) => Object.hasOwn(REFUSALS, code);

/** Why something was not done, in plain words. @param {unknown} error @returns {string} */
export function refusal(error) {
  if (!(error instanceof ApiError)) return BROKEN;
  return Object.entries(REFUSALS).find(([reason]) => reason === error.code)?.[1] ?? error.message;
}

/** Over the page, so that nothing moves, and there before it tells something: else it would not be read out. */
const said = document.createElement("output");
said.className = "said";
document.body.append(said);
for (const type of ["click", "hashchange"]) addEventListener(type, () => said.replaceChildren(), true);

/** Tells a result, also by voice; it stays until the next click or view. @param {string} text */
export function say(text) {
  said.replaceChildren();
  // An equal text is only read again when it was gone before.
  requestAnimationFrame(() => said.replaceChildren(text));
}

/** For what fails without a place of its own on the page. @param {unknown} error */
export const sayWhy = (error) => say(refusal(error));

/** What whoever looks may do, and what is said where they may not: nobody is refused before it is known. */
export function useAccess() {
  const access = useLive().overview?.access;
  const refused = (/** @type {string} */ text) => (access ? text : "The inspector has not said yet what you may do.");
  return { canAct: access === "act" || access === "reveal", canReveal: access === "reveal", refused };
}

/**
 * A button that opens what `ask` makes, a dialog. Without the right to act it can be reached, and says why it does nothing.
 *
 * @param {{ label: string, about?: string, danger?: boolean, disabled?: boolean, ask: (close: () => void) => unknown }} props
 */
export function Asking({ label, about, danger, disabled, ask }) {
  const { canAct, refused } = useAccess();
  const not = canAct ? null : refused("You may look here, but not act.");
  const [isOpen, setOpen] = useState(false);
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => () => passFocusOn(button.current), []);
  // A click in the dialog is none on the row that it belongs to.
  const stop = (/** @type {Event} */ event) => event.stopPropagation();
  return html`<button ref=${button} class=${danger ? "act danger" : "act"} title=${not}
      aria-disabled=${not || disabled ? "true" : null} onClick=${() => (not ? say(not) : disabled || setOpen(true))}
    >${label}${about && html`<span class="sr-only"> ${about}</span>`}</button>
    ${isOpen && html`<span class="asked" onClick=${stop}>${ask(() => setOpen(false))}</span>`}`;
}

/** When a row goes away with the focus in it, the next one gets it. @param {HTMLElement | null} button */
function passFocusOn(button) {
  if (button === null || document.activeElement !== button) return;
  const row = button.closest("tr");
  const next = (row?.nextElementSibling ?? row?.previousElementSibling)?.querySelector("button.act");
  if (next instanceof HTMLElement) next.focus({ preventScroll: true });
}

/**
 * One act, of ACTS: asked about, done, told. `about` names the row for those who cannot see it.
 * Lists hear `acted` and ask again, after a refusal too, for what is shown is no longer so; whatever else, by `onDone`.
 *
 * @param {{ path: string, act: string, about?: string, onDone?: () => void }} props
 */
function ActButton({ path, act, about, onDone }) {
  const [label = "", explain, danger] = ACTS[act] ?? [];
  const what = about ? `${label} ${about}` : label;
  const ask = (/** @type {() => void} */ close) => {
    const run = async (/** @type {{ currentTarget: HTMLButtonElement }} */ { currentTarget }) => {
      currentTarget.disabled = true;
      const refused = await attempt(path);
      close();
      say(refused ? `${what}: not done. ${refusal(refused)}` : `${what}: done.`);
      dispatchEvent(new Event("acted"));
      onDone?.();
    };
    return html`<${Confirm} ...${{ danger }} title=${`${what}?`} verb=${label} onClose=${close} onConfirm=${run}>${explain}<//>`;
  };
  return html`<${Asking} ...${{ label, about, danger, ask }} /> `;
}

/**
 * A button for each of `acts` on what has the path `of`, where an act goes by its verb: `replay`, also for a quarantined body.
 *
 * @param {{ acts: readonly string[], of: string, about?: string, onDone?: () => void }} props
 */
export function ActButtons({ acts, of, ...more }) {
  const pathOf = (/** @type {string} */ act) => `${of}/${act.replace("_quarantined", "")}`;
  return acts.map((act) => html`<${ActButton} key=${act} act=${act} path=${pathOf(act)} ...${more} />`);
}

/** Null when it was done, else why not. @param {string} path @returns {Promise<any>} */
export function attempt(path) {
  return post(path, {}).then(
    () => null,
    (error) => error,
  );
}
