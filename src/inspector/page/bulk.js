/** Bulk work in a dialog: what would be done is counted first, then it is done, and can be stopped. */
import { attempt, refusal } from "./acts.js";
import { lines } from "./api.js";
import { bulkStep, COUNTING, countsText, mainCount, secondsNeeded } from "./bulk-steps.js";
import { Dialog } from "./parts/dialog.js";
import { count } from "./parts/format.js";
import { html, useEffect, useReducer, useRef, useState } from "./vendor/htm-preact.js";

/** @typedef {import("./bulk-steps.js").BulkState} BulkState */
/** @typedef {import("./bulk-steps.js").BulkStepAction} BulkStepAction */
/** @typedef {import("../api.ts").BulkLine} BulkLine */
/** @typedef {import("../api.ts").BulkWork} BulkWork */
/** @typedef {{ dryRun: boolean, skipSuperseded: boolean, rate: string }} Order */

/**
 * What is asked for: work for the inbox to find and do, or the paths of the acts that were selected.
 *
 * @typedef {{ title: string, verb: string, explain: string, danger?: boolean } & ({ work: BulkWork } | { paths: readonly string[] })} BulkPlan
 */

/** @param {{ plan: BulkPlan, onDone: () => void, onClose: () => void }} props */
export function BulkDialog({ plan, onDone, onClose }) {
  const [skipSuperseded, setSkips] = useState(true);
  const [rate, setRate] = useState("");
  const { state, start, stop, dispatch } = useBulk(plan, onDone);
  const close = () => (state.step === "running" ? dispatch({ kind: "leave" }) : onClose());
  const isSet = state.step === "running" || state.step === "ended";
  useEffect(() => start({ dryRun: true, skipSuperseded, rate }), [skipSuperseded]);
  return html`<${Dialog} title=${plan.title} onClose=${close}>
    <p>${plan.explain}</p>
    ${
      "work" in plan &&
      html`<fieldset class="bulk-options" disabled=${isSet}>
      <label>At most
        <input type="number" min="0.01" max="100000" step="any" value=${rate} onInput=${(/** @type {InputEvent} */ e) => setRate(typed(e))} />
        a second <small>(empty: as fast as it goes)</small></label>
      ${
        plan.work.act === "replay" &&
        html`<label>
        <input type="checkbox" checked=${skipSuperseded} onChange=${() => setSkips(!skipSuperseded)} />
        Skip superseded ones <small>(a later event of the message was handled)</small></label>`
      }
    </fieldset>`
    }
    <p role="status" class="bulk-told">${told(state, rate)}</p>
    <${Bar} state=${state} />
    <${Choices} ...${{ plan, state, dispatch, close, onClose, stop }} onRun=${() => start({ dryRun: false, skipSuperseded, rate })} />
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
    /** @param {BulkStepAction} action */
    const tell = (action) => {
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

/**
 * @param {BulkPlan} plan
 * @param {Order} order
 * @param {(line: BulkLine) => void} onLine
 * @param {AbortSignal} signal
 */
function run(plan, { dryRun, skipSuperseded, rate }, onLine, signal) {
  if ("paths" in plan) return runOneByOne(plan, dryRun, onLine, signal);
  const pace = !dryRun && Number(rate) > 0 ? { ratePerSecond: Number(rate) } : {};
  const skips = plan.work.act === "replay" ? { skipSuperseded } : {};
  return lines("api/bulk", { ...plan.work, ...skips, ...pace, dryRun }, onLine, signal);
}

/** @param {Extract<BulkPlan, { paths: unknown }>} plan @param {boolean} dryRun @param {(line: BulkLine) => void} onLine @param {AbortSignal} signal */
async function runOneByOne({ paths, verb }, dryRun, onLine, signal) {
  const total = paths.length;
  const main = DONE_WORDS[verb] ?? "done";
  if (dryRun) return onLine({ kind: "done", dryRun, counts: { [main]: total } });
  /** @type {Record<string, number>} */
  const counts = {};
  for (const [index, path] of paths.entries()) {
    if (signal.aborted) return;
    const end = (await attempt(path))?.reason ?? main;
    counts[end] = (counts[end] ?? 0) + 1;
    onLine({ kind: "progress", done: index + 1, total });
  }
  onLine({ kind: "done", dryRun, counts });
}

/** @type {Record<string, string>} */
const DONE_WORDS = { Replay: "replayed", Discard: "discarded", Unblock: "unblocked" };

/** @param {BulkState} state @param {string} rate */
function told({ step, end, counts, done, total, message }, rate) {
  if (step === "counting") return "Counting…";
  if (step === "running") return "Working…";
  if (end === "failed") return message;
  if (end === "stopped") return `Stopped after ${of(done, total)}. Ask again for what is left.`;
  const seconds = step === "counted" ? secondsNeeded(mainCount(counts), rate) : null;
  return `${countsText(counts, { dryRun: step === "counted" })}${seconds === null ? "" : ` That takes ${seconds} s or more.`}`;
}

/** @param {number} done @param {number} total */
function of(done, total) {
  return `${count(done)} of ${count(total)}`;
}

/** Always there, so that nothing moves. @param {{ state: BulkState }} props */
function Bar({ state: { step, done, total } }) {
  const isShown = total > 0 && step !== "counted";
  return html`<p class=${isShown ? "bulk-bar" : "bulk-bar idle"}>
    <progress aria-label="Progress" value=${done} max=${total || 1}></progress> <span>${of(done, total)}</span>
  </p>`;
}

/**
 * The focus follows the button that matters, for the one that was pressed is gone.
 *
 * @param {{ plan: BulkPlan, state: BulkState, dispatch: (action: BulkStepAction) => void, close: () => void, onClose: () => void,
 *   stop: () => void, onRun: () => void }} props
 */
function Choices({ plan, state, dispatch, close, onClose, stop, onRun }) {
  const { step, isLeaving, counts } = state;
  /** @type {import("./vendor/htm-preact.js").Ref<HTMLButtonElement | null>} */
  const first = useRef(null);
  useEffect(() => {
    if (step === "running" || step === "ended") first.current?.focus();
  }, [step, isLeaving]);
  const end = () => {
    dispatch({ kind: "stop" });
    stop();
  };
  if (isLeaving)
    return html`<p class="choices" key="leaving">
      <span>Closing stops the work. What is left can be done by asking again.</span>
      <button type="button" ref=${first} onClick=${() => dispatch({ kind: "stay" })}>Keep going</button>
      <button type="button" class="danger" onClick=${onClose}>Stop and close</button>
    </p>`;
  if (step === "running")
    return html`<p class="choices" key="running"><button type="button" ref=${first} onClick=${end}>Stop</button></p>`;
  const affected = mainCount(counts);
  return html`<p class="choices" key="still">
    <button type="button" ref=${first} onClick=${close}>${step === "ended" ? "Close" : "Cancel"}</button>
    ${
      step !== "ended" &&
      html`<button type="button" class=${plan.danger ? "danger" : "primary"}
      disabled=${step !== "counted" || affected === 0} onClick=${onRun}>${plan.verb} ${count(affected)}</button>`
    }
  </p>`;
}
