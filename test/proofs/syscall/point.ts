/** One point: a process is killed at the k-th call of a kind, and what it left is looked at, opened again and looked at once more. */
import { copyFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { MIGRATIONS } from "../../../src/stores/sqlite/schema.ts";
import { createFakeClock } from "../../../src/testing/fake-clock.ts";
import { traced } from "../durability/strace.ts";
import { type Breach, breachesOf } from "../history.ts";
import { contentsAsLeft, contentsOf } from "../sqlite-inbox.ts";
import { BEGIN, DAY_MS, deliver, deliveriesOf, identitiesOf, identityOfEvent, PHASES } from "./deliveries.ts";
import { schemaOf } from "./older.ts";
import { receiverOn } from "./receiver.ts";

/** From the repository's root. */
const CHILD = ".build/test/proofs/syscall/child.js";

/** What SQLite changes files with, and makes that last. */
export const CALLS = ["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink"] as const;
export type Call = (typeof CALLS)[number];

export interface ChildOptions {
  readonly path: string;
  readonly seed: number;
  /** Says that a delivery is acknowledged before it hands it to the receiver: the control. */
  readonly answersFirst: boolean;
}

export interface Terms extends Omit<ChildOptions, "path"> {
  /** The inbox that is there before; null for none. */
  readonly older: string | null;
}

export interface Point {
  readonly call: Call;
  /** From 1. */
  readonly k: number;
  /** What the process does then, by its own words. */
  readonly step: string;
}

export interface Fate {
  readonly isKilled: boolean;
  /** What it did when it was killed. */
  readonly step: string;
  /** Before it was killed. */
  readonly acknowledged: number;
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
}

/** All calls of a process that is not killed, in their order. */
export async function pointsOf(terms: Terms): Promise<readonly Point[]> {
  return inFolder(terms, async ({ path, folder }) => {
    const log = join(folder, "calls");
    await run({ calls: ["write", ...CALLS].join(), more: ["--seccomp-bpf"], log }, { ...terms, path });
    const points: Point[] = [];
    const counts = new Map<Call, number>();
    let step = firstStepOf(terms);
    for (const line of (await readFile(log, "utf8")).split("\n")) {
      const call = CALLS.find((name) => line.includes(` ${name}(`));
      step = /\bwrite\(1, "(\w+)\\n"/.exec(line)?.[1] ?? step;
      if (call === undefined) continue;
      const k = (counts.get(call) ?? 0) + 1;
      counts.set(call, k);
      points.push({ call, k, step });
    }
    return points;
  });
}

export function killAt(terms: Terms, { call, k }: Omit<Point, "step">): Promise<Fate> {
  return inFolder(terms, async ({ path, folder }) => {
    // With its filter, which makes counting quicker, strace sends no signal.
    const more = ["-e", `inject=${call}:signal=SIGKILL:when=${k}`];
    const { said, isKilled } = await run({ calls: call, more, log: "/dev/null" }, { ...terms, path });
    return judge({ ...terms, path }, { said, isKilled, copyPath: join(folder, "copy.db") });
  });
}

async function inFolder<T>(
  { older }: Terms,
  work: (place: { readonly path: string; readonly folder: string }) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-syscall-"));
  try {
    const path = join(folder, "inbox.db");
    if (older !== null) copyFileSync(older, path);
    return await work({ path, folder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function run(
  tracing: Parameters<typeof traced>[0],
  { path, seed, answersFirst }: ChildOptions,
): Promise<{ readonly said: readonly string[]; readonly isKilled: boolean }> {
  const options: ChildOptions = { path, seed, answersFirst };
  const strace = traced(tracing, [CHILD, JSON.stringify(options)]);
  if (strace.stdout === null) throw new Error("The child has no standard output.");
  const said = (await text(strace.stdout)).split("\n").filter(Boolean);
  return { said, isKilled: said.at(-1) !== "closed" };
}

interface Remains {
  readonly said: readonly string[];
  readonly isKilled: boolean;
  readonly copyPath: string;
}

async function judge(terms: Terms & ChildOptions, { said, isKilled, copyPath }: Remains): Promise<Fate> {
  const { path, seed, older } = terms;
  const before = older === null ? [] : deliveriesOf(seed, PHASES.before);
  const old = [...before, ...deliveriesOf(seed, PHASES.first), ...deliveriesOf(seed, PHASES.second)];
  const later = deliveriesOf(seed, PHASES.later);
  // Once pruning has begun, what is a month old may be gone, and would be taken for new if it came again.
  const pruned = said.includes("pruning") ? identitiesOf(old) : [];
  const acknowledged = new Set([...identitiesOf(before), ...acknowledgedIn(said)]);
  const sent = identitiesOf([...old, ...later]);
  const known = { sent, forged: [], replayed: [], pruned, everyHandlerWrites: true };

  const left = contentsAsLeft(path, copyPath);
  const breaches = [...breachesOf({ ...known, ...left, acknowledged, moment: "running" })];
  const again = await restart(path, [...(pruned.length > 0 ? [] : old), ...later]);
  const end = contentsOf(path);
  const all = [...acknowledged, ...again.acknowledged];
  breaches.push(...breachesOf({ ...known, ...end, acknowledged: all, moment: "ended" }));

  const problems = [...again.problems, ...said.filter((line) => line.startsWith("answered"))];
  for (const { integrity } of [left, end]) if (integrity !== "ok") problems.push(`the file is damaged: ${integrity}`);
  if (schemaOf(path) !== MIGRATIONS.length) problems.push(`the inbox has schema ${schemaOf(path)}`);
  return { isKilled, step: stepOf(said) ?? firstStepOf(terms), acknowledged: acknowledged.size, breaches, problems };
}

/** The service delivers again what was not acknowledged, and more: everything comes to its end. */
async function restart(path: string, deliveries: ReturnType<typeof deliveriesOf>) {
  const clock = createFakeClock(BEGIN + 31 * DAY_MS + 3_600_000);
  const { receiver } = receiverOn(path, clock);
  const acknowledged: string[] = [];
  const problems: string[] = [];
  await receiver.start();
  await deliver(receiver, deliveries, {
    clock,
    answered(event, status) {
      if (status === 200) acknowledged.push(identityOfEvent(event));
      else problems.push(`after the restart a delivery was answered with ${status}`);
    },
  });
  await receiver.drain();
  await receiver.stop();
  return { acknowledged, problems };
}

function acknowledgedIn(said: readonly string[]): string[] {
  return said.flatMap((line) => (line.startsWith("acknowledged ") ? [line.slice("acknowledged ".length)] : []));
}

/** The step that it was in, by the last thing it said that is no acknowledgement. */
function stepOf(said: readonly string[]): string | undefined {
  return said.findLast((line) => !line.startsWith("acknowledged"));
}

function firstStepOf({ older }: Terms): string {
  return older === null ? "making" : "migrating";
}
