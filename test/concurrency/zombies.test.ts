/**
 * Processes that stand still past their leases, and go on: fencing keeps what they did out.
 *
 * @module-tag full
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fixtures } from "../../src/testing/index.ts";
import { deliver as deliverTo, type Family, FLAWLESS, until, withFamily } from "../proofs/family.ts";
import type { Asked } from "../proofs/process.ts";

const RECEIVER = { leaseMs: 1_000 };
/** Its own renewal can find out that the lease is lost before the handler has ended, or the completion does. */
const KINDS = ["stopped", "stopped-noticing"] as const;
const ROUNDS = 5;

/** `T` in the process table. Its handler stops it, so that it stands still within a lease and in no transaction. */
function standsStill({ pid }: Asked): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat[stat.lastIndexOf(")") + 2] === "T";
}

/** `stopped` stops the process that has it first; with `slower` it goes on, and ends, while its successor is at work, else after that. */
async function stopOnce(family: Family, messageId: string): Promise<void> {
  const effects = (message: string) => family.number("select count(*) from {effect} where message = ?", message);
  const zombie = () => family.children.find(standsStill);
  const deliver = (message: string) => {
    const event = fixtures.queued({ messageId: message, occurredAt: Date.now() });
    return Promise.all(family.children.map((child) => deliverTo(child, event)));
  };
  const delivered = deliver(messageId);
  await until("a process stands still", () => zombie() !== undefined);
  const attempts = () =>
    family.number("select e.attempts from {event} e join {lane} l on l.id = e.lane where l.message = ?", messageId);
  await until("another has its event", async () => (await attempts()) >= 2);
  if (!messageId.includes("slower"))
    await until("another has handled it", async () => (await effects(messageId)) === 1);
  zombie()?.process.kill("SIGCONT");
  expect((await delivered).map(({ status }) => status)).toEqual([200, 200]);
  await until("it is handled", async () => (await effects(messageId)) >= 1);
  // What the zombie accepts now is answered after its attempt to settle.
  const next = messageId.replace("stopped", "awake");
  expect((await deliver(next)).map(({ status }) => status)).toEqual([200, 200]);
  await until("they go on", async () => (await effects(next)) === 1);
  // On a busy machine its successor can lose the lease too; the zombie's own attempt was the first.
  const effect = await family.look.rows("select attempt from {effect} where message = ?", messageId);
  expect(effect).toEqual([{ attempt: expect.any(Number) }]);
  expect(effect[0]?.attempt).toBeGreaterThanOrEqual(2);
}

describe("a process that stands still past its lease", () => {
  it.skipIf(process.platform !== "linux").concurrent.each(KINDS)(
    `(%s) commits no effect when it goes on, ${ROUNDS} times, while its successor works or has finished (I3) [skipped without /proc]`,
    { timeout: 60_000 },
    (kind) =>
      withFamily(async (family) => {
        await Promise.all([family.add({ receiver: RECEIVER }), family.add({ receiver: RECEIVER })]);
        for (let index = 0; index < ROUNDS; index++) {
          await stopOnce(family, `${kind}-${index % 2 === 0 ? "slower-" : ""}${index}`);
        }
        await family.stop();
        // A handler that stood still overlaps its successor by nature; nothing else may.
        const { overlaps: _overlaps, ...verdict } = await family.verdict();
        expect({ ...verdict, overlaps: 0 }).toEqual(FLAWLESS);
        const second = family.runs().filter(({ attempt }) => attempt === 2);
        expect(second.length).toBeGreaterThanOrEqual(ROUNDS);
      }),
  );
});
