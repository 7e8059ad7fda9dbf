/** What an operator does after a bug: thousands of dead letters, one look, and a replay once it is mended. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { createReceiver, PermanentError } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { SECRET } from "../receiver/bench.ts";
import { sized } from "../setup/form.ts";
import { contextOf, turn } from "../stores/sqlite-turns.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { outboundEvent } from "./inbox-place.ts";
import { Running, runToEnd } from "./running.ts";

const DEAD = sized({ quick: 1_000, full: 5_000 });
/** Of so many messages a later event was handled. Most, for each replay is a transaction of its own. */
const SUPERSEDED = 0.8 * DEAD;
const RATE = 1_500;

function newPath(): string {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-bug-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "inbox.db");
}

/** An inbox with the `queued` of all messages, and the `sent` of the last ones. */
async function accepted(): Promise<string> {
  const path = newPath();
  const store = sqliteStore(path) as InboxStore<never>;
  await store.open(contextOf());
  for (let first = 0; first < DEAD; first += 250) {
    const messages = Array.from({ length: 250 }, (_, index) => first + index);
    const accepts = messages.flatMap((n) => {
      const queued = outboundEvent("queued", `msg_${n}`);
      return n >= DEAD - SUPERSEDED ? [queued, outboundEvent("sent", `msg_${n}`)] : [queued];
    });
    await store.step(turn<never>({ accepts }));
  }
  await store.close();
  return path;
}

/** The application: its handler of `message.queued` throws until it is mended. Resolves once nothing is ready. */
async function work(path: string, onQueued: (messageId: string) => void): Promise<void> {
  const receiver = createReceiver({
    ...{ secrets: SECRET, name: "test" },
    store: sqliteStore(path),
    logger: silentLogger,
  })
    .on("message.queued", (event) => onQueued(event.messageId))
    .onAny(() => {});
  expect(await receiver.drain()).toMatchObject({ complete: true });
  await receiver.stop();
}

it(`groups ${DEAD} dead letters of a bug, and replays them at a rate once it is mended`, {
  timeout: 60_000,
}, async () => {
  const path = await accepted();
  await work(path, (messageId) => {
    throw new PermanentError(`No order for ${messageId}`);
  });
  const environment = { ONCEHOOK_STORE: path };
  const inbox = async (...args: readonly string[]) => {
    const { code, output, errors } = await runToEnd(["inbox", ...args, "--json"], environment);
    expect([code, errors]).toEqual([0, ""]);
    return JSON.parse(output) as unknown;
  };
  expect(await inbox("ls", "--group-by", "error")).toMatchObject({
    ...{ errorCode: "permanent_failure", error: "No order for msg_#", count: DEAD },
  });

  const replay = ["replay", "--error", "permanent_failure", "--skip-superseded", "--yes", "--rate"];
  // Stopped on the way, it tells what it did, and how to go on.
  const stopped = new Running(["inbox", ...replay, "100/s", "--json"], environment);
  await until(path, ({ pending }) => pending > 0);
  stopped.signal("SIGINT");
  const { code, output, errors } = await stopped.exit;
  expect([code, errors]).toEqual([130, "error: Stopped. Give the same command again for the rest.\n"]);
  const { replayed } = JSON.parse(output) as { replayed: number };
  expect(replayed).toBeGreaterThan(0);

  const begin = performance.now();
  const rest = DEAD - SUPERSEDED - replayed;
  expect(await inbox(...replay, `${RATE}/s`)).toMatchObject({ replayed: rest, superseded: SUPERSEDED, wrong_state: 0 });
  expect(performance.now() - begin).toBeGreaterThan((1_000 * (rest - 1)) / RATE);

  const handled: string[] = [];
  await work(path, (messageId) => handled.push(messageId));
  expect(new Set(handled).size).toBe(DEAD - SUPERSEDED);
  expect(handled).toHaveLength(DEAD - SUPERSEDED);
  expect(await inbox("stats")).toMatchObject({ gauges: { dead: SUPERSEDED, pending: 0 } });
});

async function until(path: string, condition: (gauges: { readonly pending: number }) => boolean): Promise<void> {
  const store = sqliteStore(path) as InboxStore<never>;
  await store.open(contextOf());
  try {
    while (!condition((await store.stats()).gauges)) await new Promise((resolve) => setTimeout(resolve, 10));
  } finally {
    await store.close();
  }
}
