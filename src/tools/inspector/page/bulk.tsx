/** Bulk work in a dialog: first a dry run counts what would be done; then the work runs, and can be stopped. */
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { BulkLine } from "../api.ts";
import { ACTS, type ActName, Asking, reasonOf, tryAct, wasRefused } from "./acts.tsx";
import { ApiFailure, readLines } from "./api.ts";
import { formatCount } from "./format.ts";
import { Dialog } from "./parts.tsx";

type Counts = Readonly<Record<string, number>>;

export interface BulkState {
  readonly step: "counting" | "counted" | "running" | "done" | "stopped" | "failed";
  readonly done: number;
  readonly total: number;
  /** Of the step that ended last. */
  readonly counts: Counts;
  /** Why it failed. */
  readonly code: string;
  /** The newest row that the dry run counted. */
  readonly upTo?: number;
  /** The user asked to close the dialog while the work runs. */
  readonly isLeaving: boolean;
}

export type BulkAction = BulkLine | { readonly kind: "count" | "run" | "stop" | "leave" | "stay" };

export const COUNTING: BulkState = { step: "counting", done: 0, total: 0, counts: {}, code: "", isLeaving: false };

/** The next state. An action that does not fit the step changes nothing. */
export function bulkStep(state: BulkState, action: BulkAction): BulkState {
  const isRunning = state.step === "running";
  switch (action.kind) {
    case "count":
      return isRunning ? state : COUNTING;
    case "run":
      return state.step === "counted" ? { ...COUNTING, step: "running" } : state;
    case "leave":
      return { ...state, isLeaving: isRunning };
    case "stay":
      return { ...state, isLeaving: false };
    case "stop":
      return isRunning ? { ...state, step: "stopped", isLeaving: false } : state;
    default:
      return isRunning || state.step === "counting" ? heard(state, action) : state;
  }
}

/** A line of the answer, while the dry run or the work goes on. */
function heard(state: BulkState, line: BulkLine): BulkState {
  switch (line.kind) {
    case "progress":
      return { ...state, done: line.done, total: line.total };
    case "failed":
      return { ...state, step: "failed", code: line.code, isLeaving: false };
    case "done": {
      const { counts, dryRun, upTo } = line;
      // The end of the dry run is not the end of the work, nor the other way round.
      if (dryRun === (state.step === "running")) return state;
      return {
        ...state,
        step: dryRun ? "counted" : "done",
        counts,
        isLeaving: false,
        ...(upTo !== undefined && { upTo }),
      };
    }
  }
}

/** The rows that the act was done on. */
const MAIN_COUNTS = ["replayed", "discarded", "unblocked"];

/** The other rows, after "is" or "are". */
const WORDS: Readonly<Record<string, string>> = {
  in_progress: "being handled now",
  body_pruned: "without a body by now",
  not_found: "gone",
  wrong_state: "no longer in that state",
  invalid_event: "still not a valid event",
};

export function mainCount(counts: Counts): number {
  return MAIN_COUNTS.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
}

/** `4,812 would be replayed, 188 are superseded.` */
export function countsText(counts: Counts, { dryRun }: { readonly dryRun: boolean }): string {
  const parts = Object.entries(counts).filter(([, n]) => n > 0);
  if (parts.length === 0) return "Nothing matches.";
  const texts = parts.map(
    ([name, n]) => `${formatCount(n)} ${verbFor(name, n, dryRun)} ${WORDS[name] ?? name.replaceAll("_", " ")}`,
  );
  return `${texts.join(", ")}.`;
}

function verbFor(name: string, n: number, dryRun: boolean): string {
  if (!MAIN_COUNTS.includes(name)) return n === 1 ? "is" : "are";
  if (dryRun) return "would be";
  return n === 1 ? "was" : "were";
}

export function statusText({ step, done, total, counts, code }: BulkState): string {
  switch (step) {
    case "counting":
      return "Counting…";
    case "running":
      return "Working…";
    case "failed":
      return `It did not finish: ${code.replace(/\.$/, "")}. Start it again for the rest.`;
    case "stopped":
      return `Stopped after about ${formatCount(done)} of ${formatCount(total)}. Start it again for the rest.`;
    default:
      return countsText(counts, { dryRun: step === "counted" });
  }
}

export interface BulkPlan {
  readonly act: ActName;
  /** Names the rows: `dead letters`. */
  readonly what: string;
  /** The fields of the request that select the rows. */
  readonly work?: object;
  /** The paths of the single acts, for rows that the user selected. */
  readonly paths?: readonly string[];
}

/** Opens the dialog. `which` begins its title: `all`, `selected`. */
export function BulkButton({ which, ...plan }: BulkPlan & { readonly which: string }) {
  const { verb, danger } = ACTS[plan.act];
  return (
    <>
      <Asking
        label={`${verb} ${which}…`}
        danger={danger}
        disabled={plan.paths?.length === 0}
        ask={(close) => <BulkDialog plan={plan} title={`${verb} ${which} ${plan.what}`} onClose={close} />}
      />{" "}
    </>
  );
}

interface Order {
  readonly dryRun: boolean;
  readonly skipSuperseded: boolean;
  /** Acts a second, as the user wrote it; empty for no limit. */
  readonly rate: string;
  readonly upTo?: number | undefined;
}

interface BulkDialogProps {
  readonly plan: BulkPlan;
  readonly title: string;
  readonly onClose: () => void;
}

function BulkDialog({ plan, title, onClose }: BulkDialogProps) {
  const [skipSuperseded, setSkips] = useState(true);
  const [rate, setRate] = useState({ text: "", isValid: true });
  const { state, start, stop, dispatch } = useBulk(plan);
  const { step, isLeaving, done, total } = state;
  const isBegun = step !== "counting" && step !== "counted";
  // biome-ignore lint/correctness/useExhaustiveDependencies: only this choice changes what is counted
  useEffect(() => start({ dryRun: true, skipSuperseded, rate: rate.text }), [skipSuperseded]);
  const close = () => (step === "running" ? dispatch({ kind: "leave" }) : onClose());
  const begin = () => start({ dryRun: false, skipSuperseded, rate: rate.text, upTo: state.upTo });
  return (
    <Dialog title={title} onClose={close}>
      <p>{ACTS[plan.act].explain}</p>
      {plan.work && (
        <fieldset disabled={isBegun}>
          <label>
            At most{" "}
            <input
              type="number"
              min="0.01"
              max="100000"
              step="any"
              onInput={({ currentTarget: { value, validity } }) => setRate({ text: value, isValid: validity.valid })}
            />{" "}
            a second <span class="muted">(empty: no limit)</span>
          </label>
          {plan.act === "replay" && (
            <label>
              <input type="checkbox" checked={skipSuperseded} onChange={() => setSkips(!skipSuperseded)} /> Skip
              superseded events <span class="muted">(a later event was handled)</span>
            </label>
          )}
        </fieldset>
      )}
      <p role="status" class="status-text">
        {statusText(state)}
      </p>
      <p class={total > 0 && step !== "counted" ? "" : "idle"}>
        <progress aria-label="Progress" value={done} max={total || 1} /> {formatCount(done)} of {formatCount(total)}
      </p>
      <Choices
        // A new element for each step: no button changes its meaning while somebody presses it.
        key={isBegun ? `${step} ${isLeaving}` : "before"}
        {...{ plan, state, close, begin, stop }}
        canBegin={step === "counted" && rate.isValid}
        stay={() => dispatch({ kind: "stay" })}
        leave={onClose}
      />
    </Dialog>
  );
}

interface ChoicesProps {
  readonly plan: BulkPlan;
  readonly state: BulkState;
  readonly canBegin: boolean;
  readonly begin: () => void;
  readonly stop: () => void;
  readonly close: () => void;
  readonly stay: () => void;
  readonly leave: () => void;
}

/** The buttons at the end of the dialog. */
function Choices({ plan, state, canBegin, begin, stop, close, stay, leave }: ChoicesProps) {
  const { verb, danger } = ACTS[plan.act];
  const affected = mainCount(state.counts);
  const isBefore = state.step === "counting" || state.step === "counted";
  const first = useRef<HTMLButtonElement>(null);
  // The button that had the focus was replaced.
  useEffect(() => {
    if (!isBefore) first.current?.focus();
  }, [isBefore]);
  if (state.isLeaving)
    return (
      <p class="choices">
        Closing stops the work.{" "}
        <button ref={first} type="button" onClick={stay}>
          Keep going
        </button>
        <button type="button" class="danger" onClick={leave}>
          Stop and close
        </button>
      </p>
    );
  if (state.step === "running")
    return (
      <p class="choices">
        <button ref={first} type="button" onClick={stop}>
          Stop
        </button>
      </p>
    );
  return (
    <p class="choices">
      <button ref={first} type="button" onClick={close}>
        {isBefore ? "Cancel" : "Close"}
      </button>
      {isBefore && (
        <button
          type="button"
          class={danger ? "danger" : "primary"}
          disabled={!canBegin || affected === 0}
          onClick={begin}
        >
          {verb} {formatCount(affected)}
        </button>
      )}
    </p>
  );
}

const BROKE_OFF = "the connection was lost";

function useBulk(plan: BulkPlan) {
  const [state, dispatch] = useReducer(bulkStep, COUNTING);
  const task = useRef(new AbortController());
  useEffect(() => () => task.current.abort(), []);
  const start = (order: Order) => {
    task.current.abort();
    task.current = new AbortController();
    const { signal } = task.current;
    const report = (action: BulkAction) => {
      if (!signal.aborted) dispatch(action);
    };
    report({ kind: order.dryRun ? "count" : "run" });
    run(plan, order, report, signal)
      // Changes nothing after the last line, which says how the work ended.
      .then(() => report({ kind: "failed", code: BROKE_OFF }))
      .catch((error) => report({ kind: "failed", code: error instanceof ApiFailure ? reasonOf(error) : BROKE_OFF }))
      .then(() => {
        if (!order.dryRun) dispatchEvent(new Event("acted"));
      });
  };
  const stop = () => {
    dispatch({ kind: "stop" });
    task.current.abort();
  };
  return { state, start, stop, dispatch };
}

async function run(plan: BulkPlan, order: Order, report: (line: BulkLine) => void, signal: AbortSignal): Promise<void> {
  if (plan.paths !== undefined) return runSelected(plan.act, plan.paths, { order, report, signal });
  const { dryRun, rate, skipSuperseded, upTo } = order;
  const request = {
    act: plan.act,
    ...plan.work,
    ...(plan.act === "replay" && { skipSuperseded }),
    ...(!dryRun && rate !== "" && { ratePerSecond: Number(rate) }),
    dryRun,
    upTo,
  };
  const onLine = (line: string) => {
    if (line !== "") report(JSON.parse(line));
  };
  return readLines("api/bulk", request, onLine, signal);
}

interface Task {
  readonly order: Order;
  readonly report: (line: BulkLine) => void;
  readonly signal: AbortSignal;
}

/** One act after the other. It ends early only for an error that the next act would meet too. */
async function runSelected(act: ActName, paths: readonly string[], { order: { dryRun }, report, signal }: Task) {
  const counts: Record<string, number> = dryRun ? { [`${act}ed`]: paths.length } : {};
  for (const [index, path] of dryRun ? [] : paths.entries()) {
    if (signal.aborted) return;
    const error = await tryAct(path);
    if (error !== null && !(error instanceof ApiFailure && wasRefused(error))) throw error;
    const end = error === null ? `${act}ed` : error.code;
    counts[end] = (counts[end] ?? 0) + 1;
    report({ kind: "progress", done: index + 1, total: paths.length });
  }
  report({ kind: "done", dryRun, counts });
}
