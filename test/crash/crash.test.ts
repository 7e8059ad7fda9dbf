/** Kills a receiver under load, again and again on one inbox: nothing acknowledged is lost, done twice or out of order. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { identityOf } from "../../src/events/identity.ts";
import { seededRandom } from "../../src/testing/index.ts";
import { Load } from "./load.ts";

const SEED = Number(process.env.CRASH_SEED ?? 20_251_120);
const KILLS = 25;
const SECRET = "a-crash-test-secret-of-32-bytes-";
/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/crash/child.js", import.meta.url));

interface Ready {
  readonly port: number;
  readonly recoveryMs: number;
  readonly readyMs: number;
}

async function launch(inboxPath: string): Promise<{ child: ChildProcess; ready: Ready }> {
  const child = spawn(process.execPath, [CHILD, inboxPath, SECRET], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "close").then(([code]) => Promise.reject(new Error(`The child ended with ${code}: ${errors}`))),
  ]);
  return { child, ready: JSON.parse(String(line)) };
}

interface StoredRow {
  readonly client: string;
  readonly message: string;
  readonly seq: number;
  readonly kind: string;
}

/** Identities in the file as the kill left it: read from a copy, so that the restart recovers the file itself. */
async function storedIdentities(inboxPath: string, folder: string): Promise<Set<string>> {
  const copy = join(folder, "copy.db");
  await rm(`${copy}-shm`, { force: true });
  for (const suffix of ["", "-wal"]) await copyFile(`${inboxPath}${suffix}`, `${copy}${suffix}`);
  const db = new Database(copy);
  try {
    const rows = db
      .prepare(
        `select c.name as client, l.message as message, e.seq as seq, k.name as kind from oncehook_event e
         join oncehook_lane l on l.id = e.lane join oncehook_client c on c.id = l.client join oncehook_kind k on k.id = e.kind`,
      )
      .all() as StoredRow[];
    return new Set(
      rows.map(({ client, message, seq, kind }) =>
        identityOf({ apiClientId: client, tag: "outbound", messageId: message }, seq, kind),
      ),
    );
  } finally {
    db.close();
  }
}

describe("a receiver that is killed", () => {
  it(`loses nothing acknowledged and repeats no effect, over ${KILLS} SIGKILLs under load (I2, I3, I4, I5, RCV-3, RCV-7)`, {
    timeout: 120_000,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "oncehook-crash-"));
    try {
      const report = await torture(folder);
      console.log(` crash: ${JSON.stringify(report)}`);
      expect(report).toMatchObject({
        kills: KILLS,
        lost: 0,
        effectsMissing: 0,
        effectsTwice: 0,
        inversions: 0,
        pending: 0,
      });
      expect(report.refusals).toEqual([]);
      expect(report.acknowledged).toBeGreaterThan(KILLS * 8);
      // Otherwise no kill hit anything.
      expect(report.unanswered).toBeGreaterThan(0);
      expect(report.recoveredLeases).toBeGreaterThan(0);
      expect(report.slowestRecoveryMs).toBeLessThan(1_000);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

async function torture(folder: string) {
  const inboxPath = join(folder, "inbox.db");
  const random = seededRandom(SEED);
  const recoveries: Ready[] = [];
  let running = launch(inboxPath);
  const load = new Load(SEED, SECRET, async () => (await running).ready.port);
  const sending = load.run();
  sending.catch(() => {}); // It fails with the launch that it waits for, which the loop below reports.
  const lost = new Set<string>();
  for (let kill = 0; kill < KILLS; kill++) {
    const { child } = await running;
    await wait(60 + random() * 300);
    const exited = once(child, "exit");
    let settle: (next: ReturnType<typeof launch>) => void = () => {};
    running = new Promise((resolve) => {
      settle = resolve;
    });
    child.kill("SIGKILL");
    await exited;
    const acknowledged = [...load.acknowledged];
    const stored = await storedIdentities(inboxPath, folder);
    for (const identity of acknowledged) if (!stored.has(identity)) lost.add(identity);
    const next = launch(inboxPath);
    settle(next);
    recoveries.push((await next).ready);
  }
  load.finish();
  await sending;
  const { child } = await running;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const [code] = await exited;
  expect(code).toBe(0);
  return { kills: KILLS, lost: lost.size, ...verdictOf(inboxPath, load), ...times(recoveries) };
}

function verdictOf(inboxPath: string, load: Load) {
  const db = new Database(inboxPath, { readonly: true });
  try {
    const effects = db.prepare("select identity, message_id, sequence from effect order by id").all() as {
      identity: string;
      message_id: string;
      sequence: number;
    }[];
    const count = (sql: string) => db.prepare(sql).pluck().get() as number;
    const last = new Map<string, number>();
    let inversions = 0;
    for (const { message_id, sequence } of effects) {
      if (sequence < (last.get(message_id) ?? 0)) inversions += 1;
      last.set(message_id, sequence);
    }
    const done = new Set(effects.map(({ identity }) => identity));
    return {
      acknowledged: load.acknowledged.size,
      unanswered: load.unanswered,
      refusals: load.refusals,
      effectsMissing: load.expected.filter(({ identity }) => !done.has(identity)).length,
      effectsTwice: effects.length - done.size + Math.abs(effects.length - count("select events from total")),
      inversions,
      pending: count("select count(*) from oncehook_event where state = 0"),
      recoveredLeases: count("select count(*) from oncehook_event where attempts > 1"),
    };
  } finally {
    db.close();
  }
}

function times(recoveries: readonly Ready[]) {
  const slowest = (pick: (ready: Ready) => number) => Math.round(Math.max(...recoveries.map(pick)));
  return { slowestRecoveryMs: slowest((ready) => ready.recoveryMs), slowestReadyMs: slowest((ready) => ready.readyMs) };
}
