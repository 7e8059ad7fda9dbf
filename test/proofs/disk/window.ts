/** One process under load through windows of faults, one after the other, and what became of its deliveries. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Breach, breachesOf } from "../history.ts";
import { contentsOf } from "../sqlite-inbox.ts";
import { type Fault, makeFolder } from "./faults.ts";
import { type Answer, Subject } from "./subject.ts";

const CALM_MS = 400;
const FAULT_MS = 1_500;
/** Its own patience with a lock is shorter than the window. */
const BUSY_TIMEOUT_MS = 300;
const RECOVERS_WITHIN_MS = 5_000;
/** Of the windows may refuse nothing: SQLite's log, begun anew in the file that it has, needs no room on a full disk for a while. */
const IDLE_SHARE = 0.1;

export interface WindowReport {
  readonly refused: number;
  /** From the fault's end to the first 200. */
  readonly recoveredMs: number;
  readonly stallMs: number;
}

export interface Outcome {
  readonly windows: readonly WindowReport[];
  readonly breaches: readonly Breach[];
  readonly acknowledged: number;
  readonly problems: readonly string[];
}

export async function throughWindows(fault: Fault, count: number, answersFirst = false): Promise<Outcome> {
  const { folder, remove } = makeFolder();
  const path = join(folder, "inbox.db");
  try {
    const subject = await Subject.start({ path, busyTimeoutMs: BUSY_TIMEOUT_MS, answersFirst });
    subject.begin();
    const windows: WindowReport[] = [];
    for (let index = 0; index < count; index++) windows.push(await oneWindow(subject, fault, path));
    const unfinished = await subject.finish();
    const problems = [...unfinished, ...(await subject.stop()), ...strangeAnswers(subject.answers)];
    const { effects, stored, integrity } = contentsOf(path);
    if (integrity !== "ok") problems.push(`the file is damaged: ${integrity}`);
    const { sent, acknowledged } = subject;
    const known = { sent, forged: [], acknowledged, replayed: [], effects, stored };
    const breaches = breachesOf({ ...known, moment: "ended", everyHandlerWrites: true });
    return { windows, breaches, acknowledged: acknowledged.length, problems };
  } finally {
    remove();
  }
}

async function oneWindow(subject: Subject, fault: Fault, path: string): Promise<WindowReport> {
  const { child, answers } = subject;
  await sleep(CALM_MS);
  await child.stallMs();
  const before = answers.length;
  const end = await fault.begin({ pid: child.pid, path });
  await sleep(FAULT_MS);
  const refused = answers.slice(before).filter(({ status }) => status === 503).length;
  await end();
  const endedAt = performance.now();
  const recovered = () => answers.find(({ at, status }) => at > endedAt && status === 200);
  while (recovered() === undefined && performance.now() < endedAt + 2 * RECOVERS_WITHIN_MS) await sleep(5);
  const recoveredMs = Math.round((recovered()?.at ?? Number.POSITIVE_INFINITY) - endedAt);
  return { refused, recoveredMs, stallMs: await child.stallMs() };
}

function strangeAnswers(answers: readonly Answer[]): string[] {
  const strange = answers.filter(({ status }) => status !== 200 && status !== 503);
  return strange.length === 0
    ? []
    : [`${strange.length} answers were ${[...new Set(strange.map(({ status }) => status))]}`];
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
