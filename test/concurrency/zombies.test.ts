/** Processes that stand still past their leases, and go on: fencing keeps what they did out. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fixtures } from "../../src/testing/index.ts";
import { type Child, type Family, until, withFamily } from "./family.ts";
import { FLAWLESS, runsOf, verdictOf } from "./verdict.ts";

const RECEIVER = { leaseMs: 1_000 };
const KINDS = ["stopped", "stopped-noticing"] as const;
const ZOMBIES = 4;
const ROUNDS = 3;

/** `T` in the process table. Its handler stops it, so that it stands still within a lease and in no transaction. */
function standsStill({ pid }: Child): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat[stat.lastIndexOf(")") + 2] === "T";
}

/** `stopped` stops the process that has it first; with `slow` it goes on while its successor is at work, else after that. */
async function round(family: Family, zombie: Child, messageId: string): Promise<void> {
  const effects = () => family.number("select count(*) from handled where message = ?", messageId);
  const attempts = () =>
    family.number(
      `select max(attempts) from oncehook_event where lane = (select id from oncehook_lane where message = ?)`,
      messageId,
    );
  const delivered = zombie.deliver(fixtures.queued({ messageId, occurredAt: Date.now() }));
  await until("the zombie stands still", () => standsStill(zombie));
  await until("another has its event", () => attempts() === 2);
  if (!messageId.includes("slow")) await until("another has handled it", () => effects() === 1);
  zombie.process.kill("SIGCONT");
  expect((await delivered).status).toBe(200);
  await until("it is handled", () => effects() >= 1);
  // What the zombie accepts and handles now comes after its attempt to settle.
  const next = messageId.replace("stopped", "awake");
  const after = await zombie.deliver(fixtures.queued({ messageId: next, occurredAt: Date.now() }));
  expect(after.status).toBe(200);
  await until("the zombie goes on", () => family.number("select count(*) from handled where message = ?", next) === 1);
  // On a busy machine its successor can lose the lease too; the zombie's own attempt was the first.
  const attempt = family.db.prepare("select attempt from handled where message = ?").pluck();
  expect(attempt.all(messageId)).toEqual([expect.any(Number)]);
  expect(attempt.get(messageId)).toBeGreaterThanOrEqual(2);
}

describe("a process that stands still past its lease", () => {
  it.skipIf(process.platform !== "linux")(
    `commits no effect when it goes on, ${ZOMBIES * ROUNDS} times, while its successor works or has finished (I3) [skipped without /proc]`,
    { timeout: 60_000 },
    () =>
      withFamily(async (family) => {
        const children = await Promise.all(
          Array.from({ length: ZOMBIES + 1 }, () => family.add({ receiver: RECEIVER })),
        );
        const stopAgainAndAgain = async (zombie: Child, place: number) => {
          for (let index = 0; index < ROUNDS; index++) {
            const name = `${KINDS[place % 2]}-${index % 2 === 0 ? "slow-" : ""}${place}-${index}`;
            await round(family, zombie, name);
          }
        };
        // The last one is never stopped.
        await Promise.all(children.slice(0, ZOMBIES).map(stopAgainAndAgain));
        await family.stop();
        // A handler that stood still overlaps its successor by nature; nothing else may.
        const { overlaps: _overlaps, ...verdict } = verdictOf(family);
        expect({ ...verdict, overlaps: 0 }).toEqual(FLAWLESS);
        const second = runsOf(family).filter(({ attempt }) => attempt === 2);
        expect(second).toHaveLength(ZOMBIES * ROUNDS);
      }),
  );
});
