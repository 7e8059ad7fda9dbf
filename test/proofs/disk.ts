/** `npm run prove -- disk`: a full disk, I/O errors, a disk that takes no writes and a foreign lock, under load. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FAULTS, type Fault, makeFolder } from "./disk-faults.ts";
import { breachCounts, breachLines } from "./history.ts";
import { missingFrom, type Programme, type Proof, type Terms, within } from "./programme.ts";
import { type Judged, Subject } from "./subject.ts";

const SHORT = 1;
const FULL = 20;
const MOST_STALL_MS = 250;
/** A fault that needs neither strace nor root. */
const ANYWHERE = "foreign lock";
const CALM_MS = 400;
const FAULT_MS = 1_500;
/** Its own patience with a lock is shorter than the window. */
const BUSY_TIMEOUT_MS = 300;
const RECOVERS_WITHIN_MS = 5_000;
/** The share of windows that may refuse nothing: SQLite's log, begun anew in the file that it has, needs no room on a full disk for a while. */
const IDLE_SHARE = 0.1;

interface WindowReport {
  readonly refused: number;
  /** From the fault's end to the first 200. */
  readonly recoveredMs: number;
  readonly stallMs: number;
}

interface Outcome extends Judged {
  readonly windows: readonly WindowReport[];
}

export const diskFaults: Programme = {
  name: "disk",
  what: "a disk that fails is answered with 503 and nothing else, nothing acknowledged is lost, and all goes on by itself within 5 s",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    const faults = FAULTS.filter(({ name }) => !small || name === ANYWHERE);
    const problems: string[] = [];
    let windows = 0;
    for (const fault of faults) {
      const reason = fault.missing();
      if (reason !== null) {
        say(`${fault.name.padEnd(15)} left out: ${reason}`);
        continue;
      }
      const outcome = await throughWindows(fault, full ? FULL : SHORT);
      windows += outcome.windows.length;
      say(`${fault.name.padEnd(15)} ${lineOf(outcome)}`);
      const found = [...breachLines(outcome.breaches), ...shortcomings(outcome, full ? MOST_STALL_MS : null)];
      problems.push(...found.map((problem) => `${fault.name}: ${problem}`));
    }
    if (!small) problems.push(...(await unseen(say)));
    return { count: windows, unit: `windows of ${faults.length} faults`, problems };
  },
};

/** The control: a front that answers before it stores. */
async function unseen(say: Terms["say"]): Promise<string[]> {
  const control = FAULTS.find(({ name }) => name === ANYWHERE);
  if (control === undefined) return ["there is no fault for the control"];
  const careless = await throughWindows(control, 1, true);
  say(`${"answers first".padEnd(15)} ${lineOf(careless)}`);
  const isSeen = careless.breaches.some(({ kind }) => kind === "lost");
  return missingFrom({ "answers before the commit were not seen to lose anything": isSeen });
}

function lineOf({ windows, breaches, acknowledged }: Outcome): string {
  const most = (pick: (window: WindowReport) => number) => Math.max(...windows.map(pick));
  const refused = windows.reduce((sum, window) => sum + window.refused, 0);
  const times = `recovered within ${most(({ recoveredMs }) => recoveredMs)} ms, longest stall ${most(({ stallMs }) => stallMs)} ms`;
  return `${acknowledged} acknowledged, ${refused} refused in ${windows.length} windows, ${times}: ${breachCounts(breaches)}`;
}

/** One process under load through windows of faults, one after the other, and what became of its deliveries. */
async function throughWindows(fault: Fault, count: number, answersFirst = false): Promise<Outcome> {
  const { folder, remove } = makeFolder();
  const path = join(folder, "inbox.db");
  try {
    const subject = await Subject.start(path, {
      store: { busyTimeoutMs: BUSY_TIMEOUT_MS },
      ...(answersFirst && { flaws: ["answer_before_commit"] }),
    });
    const windows: WindowReport[] = [];
    for (let index = 0; index < count; index++) windows.push(await oneWindow(subject, fault, path));
    return { windows, ...(await subject.end([200, 503])) };
  } finally {
    remove();
  }
}

async function oneWindow({ child, sender: { answers } }: Subject, fault: Fault, path: string): Promise<WindowReport> {
  await sleep(CALM_MS);
  await child.ask("stall");
  const before = answers.length;
  const end = await fault.begin({ pid: child.pid, path });
  await sleep(FAULT_MS);
  const refused = answers.slice(before).filter(({ status }) => status === 503).length;
  await end();
  const endedAt = performance.now();
  const recovered = () => answers.find(({ at, status }) => at > endedAt && status === 200);
  await within(2 * RECOVERS_WITHIN_MS, () => recovered() !== undefined, 5);
  const recoveredMs = Math.round((recovered()?.at ?? Number.POSITIVE_INFINITY) - endedAt);
  return { refused, recoveredMs, stallMs: await child.ask<number>("stall") };
}

/** What a window must show. @param mostStallMs - null where the machine is too busy to tell */
export function shortcomings({ windows, problems }: Outcome, mostStallMs: number | null): string[] {
  const found = [...problems];
  const idle = windows.filter(({ refused }) => refused === 0).length;
  if (idle > IDLE_SHARE * windows.length) found.push(`${idle} windows refused nothing: the fault was in nobody's way`);
  for (const [index, { recoveredMs, stallMs }] of windows.entries()) {
    if (recoveredMs > RECOVERS_WITHIN_MS)
      found.push(`window ${index + 1}: took events again only after ${recoveredMs} ms`);
    if (mostStallMs !== null && stallMs > mostStallMs) found.push(`window ${index + 1}: stood still for ${stallMs} ms`);
  }
  return found;
}
