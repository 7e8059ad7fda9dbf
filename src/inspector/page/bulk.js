/** Bulk work in a dialog: what would be done is counted first, then it is done, and can be stopped. */
import { ACTS, Asking, attempt, isRefusal, refusal } from "./acts.js";
import { ApiError, lines } from "./api.js";
import { bulkStep, COUNTING, mainCount, told } from "./bulk-steps.js";
import { Dialog } from "./parts/dialog.js";
import { count } from "./parts/format.js";
import { html, useEffect, useReducer, useRef, useState } from "./vendor/htm-preact.js";

/**
 * `work` is what more the inbox is told to find it; `paths` are those of single acts that were selected.
 *
 * @import { BulkLine } from "../api.ts"
 * @typedef {{ act: string, what: string, work?: object, paths?: readonly string[] }} Plan
 * @typedef {{ dryRun: boolean, skipSuperseded: boolean, rate: string, upTo?: number | undefined }} Order
 */

const BROKE_OFF = "the answer broke off";

/** Opens the dialog. @param {Plan & { which: string }} props `which` are meant: `all` */
export function BulkButton({ which, ...plan }) {
  const [verb = "", , danger] = ACTS[plan.act] ?? [];
  const ask = (/** @type {() => void} */ onClose) =>
    html`<${BulkDialog} ...${{ plan, onClose }} title=${`${verb} ${which} ${plan.what}`} />`;
  return html`<${Asking} ...${{ danger, ask }} disabled=${plan.paths?.length === 0} label=${`${verb} ${which}…`} /> `;
}

/** @param {{ plan: Plan, title: string, onClose: () => void }} props */
function BulkDialog({ plan, title, onClose }) {
  const [verb, explain, danger] = ACTS[plan.act] ?? [];
  const [skipSuperseded, setSkips] = useState(true);
  const [{ rate, isRate }, setRate] = useState({ rate: "", isRate: true });
  const { state, start, stop, dispatch } = useBulk(plan);
  const { step, isLeaving, done, total } = state;
  const isSet = step !== "counting" && step !== "counted";
  const affected = mainCount(state.counts);
  const first = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => start({ dryRun: true, skipSuperseded, rate }), [skipSuperseded]);
  // The button that was pressed is gone.
  useEffect(() => void (isSet && first.current?.focus()), [step, isLeaving]);
  const close = () => (step === "running" ? dispatch({ kind: "leave" }) : onClose());
  const choices = isLeaving
    ? html`Closing stops the work. <button ref=${first} onClick=${() => dispatch({ kind: "stay" })}>Keep going</button>
        <button class="danger" onClick=${onClose}>Stop and close</button>`
    : step === "running"
      ? html`<button ref=${first} onClick=${stop}>Stop</button>`
      : html`<button ref=${first} onClick=${close}>${isSet ? "Close" : "Cancel"}</button>
          ${
            !isSet &&
            html`<button class=${danger ? "danger" : "primary"} disabled=${step !== "counted" || affected === 0 || !isRate}
            onClick=${() => start({ dryRun: false, skipSuperseded, rate, upTo: state.upTo })}>${verb} ${count(affected)}</button>`
          }`;
  return html`<${Dialog} title=${title} onClose=${close}>
    <p>${explain}</p>
    ${
      plan.work &&
      html`<fieldset disabled=${isSet}>
      <label>At most <input type="number" min="0.01" max="100000" step="any"
        onInput=${(/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget: { value, validity } }) => setRate({ rate: value, isRate: validity.valid })} /> a second <span class="muted">(empty: as fast as it goes)</span></label>
      ${
        plan.act === "replay" &&
        html`<label><input type="checkbox" checked=${skipSuperseded} onChange=${() => setSkips(!skipSuperseded)} />
        Skip superseded ones <span class="muted">(a later event was handled)</span></label>`
      }
    </fieldset>`
    }
    <p role="status" class="told">${told(state)}</p>
    <p class=${total > 0 && step !== "counted" ? "" : "idle"}>
      <progress aria-label="Progress" value=${done} max=${total || 1}></progress> ${count(done)} of ${count(total)}</p>
    <p class="choices" key=${isSet && step + isLeaving}>${choices}</p>
  <//>`;
}

/** @param {Plan} plan */
function useBulk(plan) {
  const [state, dispatch] = useReducer(bulkStep, COUNTING);
  const task = useRef(new AbortController());
  useEffect(() => () => task.current.abort(), []);
  const start = (/** @type {Order} */ order) => {
    task.current.abort();
    task.current = new AbortController();
    const { signal } = task.current;
    const tell = (/** @type {import("./bulk-steps.js").BulkAction} */ action) => signal.aborted || dispatch(action);
    tell({ kind: order.dryRun ? "count" : "run" });
    run(plan, order, tell, signal)
      // Without effect behind its end.
      .then(() => tell({ kind: "failed", code: BROKE_OFF }))
      .catch((error) => tell({ kind: "failed", code: error instanceof ApiError ? refusal(error) : BROKE_OFF }))
      .then(() => order.dryRun || dispatchEvent(new Event("acted")));
  };
  const stop = () => {
    dispatch({ kind: "stop" });
    task.current.abort();
  };
  return { state, start, stop, dispatch };
}

/** @param {Plan} plan @param {Order} order @param {(line: BulkLine) => unknown} tell @param {AbortSignal} signal */
async function run({ act, work, paths }, { dryRun, skipSuperseded, rate, upTo }, tell, signal) {
  const pace = !dryRun && rate ? { ratePerSecond: Number(rate) } : {};
  const skips = act === "replay" ? { skipSuperseded } : {};
  if (!paths) return lines("api/bulk", { act, ...work, ...skips, ...pace, dryRun, upTo }, tell, signal);
  /** @type {Record<string, number>} */
  const counts = dryRun ? { [`${act}ed`]: paths.length } : {};
  for (const [index, path] of dryRun ? [] : paths.entries()) {
    if (signal.aborted) return;
    const error = await attempt(path);
    if (error && !isRefusal(error)) throw error;
    const end = error?.code ?? `${act}ed`;
    counts[end] = (counts[end] ?? 0) + 1;
    tell({ kind: "progress", done: index + 1, total: paths.length });
  }
  tell({ kind: "done", dryRun, counts });
}
