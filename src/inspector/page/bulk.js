/** Bulk work in a dialog: what would be done is counted first, then it is done, and can be stopped. */
import { ACTS, Asking, attempt, refusal } from "./acts.js";
import { lines } from "./api.js";
import { bulkStep, COUNTING, countsText, mainCount, secondsNeeded } from "./bulk-steps.js";
import { Dialog } from "./parts/dialog.js";
import { count } from "./parts/format.js";
import { html, useEffect, useReducer, useRef, useState } from "./vendor/htm-preact.js";

/**
 * @typedef {import("./bulk-steps.js").BulkState} BulkState
 * @typedef {import("./bulk-steps.js").BulkStepAction} BulkStepAction
 * @typedef {(line: import("../api.ts").BulkLine) => void} OnLine
 *
 * @typedef {object} BulkPlan
 * @property {string} act
 * @property {string} title
 * @property {object} [work] what more the inbox is told to find it; none for `paths`
 * @property {readonly string[]} [paths] of the single acts that were selected
 *
 * @typedef {{ dryRun: boolean, skipSuperseded: boolean, rate: string }} Order
 */

/** Opens the dialog. @param {BulkPlan & { which: string, disabled?: boolean, onDone: () => void }} props */
export function BulkButton({ which, disabled, onDone, ...plan }) {
  const [verb, , danger] = ACTS[plan.act] ?? [plan.act];
  const ask = (/** @type {() => void} */ onClose) => html`<${BulkDialog} ...${{ plan, onDone, onClose }} />`;
  return html`<${Asking} ...${{ danger, disabled, ask }} label=${`${verb} ${which}…`} /> `;
}

/** @param {{ plan: BulkPlan, onDone: () => void, onClose: () => void }} props */
function BulkDialog({ plan, onDone, onClose }) {
  const [verb = "", explain, danger] = ACTS[plan.act] ?? [];
  const [skipSuperseded, setSkips] = useState(true);
  const [rate, setRate] = useState("");
  const { state, start, stop, dispatch } = useBulk(plan, onDone);
  const { step, isLeaving } = state;
  const isSet = step === "running" || step === "ended";
  const affected = mainCount(state.counts);
  /** The focus follows the button that matters, for the one that was pressed is gone. @type {import("./vendor/htm-preact.js").Ref<HTMLElement | null>} */
  const first = useRef(null);
  useEffect(() => start({ dryRun: true, skipSuperseded, rate }), [skipSuperseded]);
  useEffect(() => {
    if (isSet) first.current?.focus();
  }, [step, isLeaving]);
  const close = () => (step === "running" ? dispatch({ kind: "leave" }) : onClose());
  const end = () => {
    dispatch({ kind: "stop" });
    stop();
  };
  const choices = isLeaving
    ? html`Closing stops the work. <button type="button" ref=${first} onClick=${() => dispatch({ kind: "stay" })}>Keep going</button>
        <button type="button" class="danger" onClick=${onClose}>Stop and close</button>`
    : step === "running"
      ? html`<button type="button" ref=${first} onClick=${end}>Stop</button>`
      : html`<button type="button" ref=${first} onClick=${close}>${isSet ? "Close" : "Cancel"}</button>
          ${
            !isSet &&
            html`<button type="button" class=${danger ? "danger" : "primary"} disabled=${step !== "counted" || affected === 0}
            onClick=${() => start({ dryRun: false, skipSuperseded, rate })}>${verb} ${count(affected)}</button>`
          }`;
  return html`<${Dialog} title=${plan.title} onClose=${close}>
    <p>${explain}</p>
    ${
      plan.work &&
      html`<fieldset class="bulk-options" disabled=${isSet}>
      <label>At most <input type="number" min="0.01" max="100000" step="any" value=${rate} onInput=${(/** @type {InputEvent} */ event) => setRate(typed(event))} />
        a second <span class="muted">(empty: as fast as it goes)</span></label>
      ${
        plan.act === "replay" &&
        html`<label><input type="checkbox" checked=${skipSuperseded} onChange=${() => setSkips(!skipSuperseded)} />
        Skip superseded ones <span class="muted">(a later event was handled)</span></label>`
      }
    </fieldset>`
    }
    <p role="status" class="bulk-told">${told(state, rate)}</p>
    <${Bar} state=${state} />
    <p class="choices" key=${`${step}${isLeaving}`}>${choices}</p>
  <//>`;
}

/** @param {Event} event */
function typed({ target }) {
  return target instanceof HTMLInputElement ? target.value : "";
}

/** @param {BulkPlan} plan @param {() => void} onDone */
function useBulk(plan, onDone) {
  const [state, dispatch] = useReducer(bulkStep, COUNTING);
  /** @type {import("./vendor/htm-preact.js").Ref<AbortController | null>} */
  const task = useRef(null);
  const stop = () => task.current?.abort();
  useEffect(() => stop, []);
  const start = (/** @type {Order} */ order) => {
    stop();
    task.current = new AbortController();
    const { signal } = task.current;
    const tell = (/** @type {BulkStepAction} */ action) => {
      if (!signal.aborted) dispatch(action);
    };
    tell({ kind: order.dryRun ? "count" : "run" });
    run(plan, order, (line) => tell({ kind: "line", line }), signal)
      .then(() => tell({ kind: "broken", message: "The answer ended early. Ask again for the rest." }))
      .catch((error) => tell({ kind: "broken", message: refusal(error) }))
      .then(() => order.dryRun || onDone());
  };
  return { state, dispatch, stop, start };
}

/** @param {BulkPlan} plan @param {Order} order @param {OnLine} onLine @param {AbortSignal} signal */
function run(plan, { dryRun, skipSuperseded, rate }, onLine, signal) {
  if (plan.paths) return runOneByOne(plan.act, plan.paths, { dryRun, onLine, signal });
  const pace = !dryRun && Number(rate) > 0 ? { ratePerSecond: Number(rate) } : {};
  const skips = plan.act === "replay" ? { skipSuperseded } : {};
  return lines("api/bulk", { act: plan.act, ...plan.work, ...skips, ...pace, dryRun }, onLine, signal);
}

/** @param {string} act @param {readonly string[]} paths @param {{ dryRun: boolean, onLine: OnLine, signal: AbortSignal }} order */
async function runOneByOne(act, paths, { dryRun, onLine, signal }) {
  const total = paths.length;
  const main = `${act}ed`;
  /** @type {Record<string, number>} */
  const counts = dryRun ? { [main]: total } : {};
  for (const path of dryRun ? [] : paths) {
    if (signal.aborted) return;
    const end = (await attempt(path))?.reason ?? main;
    counts[end] = (counts[end] ?? 0) + 1;
    onLine({ kind: "progress", done: Object.values(counts).reduce((sum, one) => sum + one, 0), total });
  }
  onLine({ kind: "done", dryRun, counts });
}

/** @param {BulkState} state @param {string} rate */
function told({ step, end, counts, done, total, message }, rate) {
  if (step === "counting") return "Counting…";
  if (step === "running") return "Working…";
  if (end === "failed") return message;
  if (end === "stopped") return `Stopped after ${count(done)} of ${count(total)}. Ask again for what is left.`;
  const seconds = step === "counted" ? secondsNeeded(mainCount(counts), rate) : null;
  return (
    countsText(counts, { dryRun: step === "counted" }) + (seconds === null ? "" : ` That takes ${count(seconds)} s.`)
  );
}

/** Always there, so that nothing moves. @param {{ state: BulkState }} props */
function Bar({ state: { step, done, total } }) {
  return html`<p class=${total > 0 && step !== "counted" ? "bulk-bar" : "bulk-bar idle"}>
    <progress aria-label="Progress" value=${done} max=${total || 1}></progress> ${count(done)} of ${count(total)}
  </p>`;
}
