/** A receiver that forwards, on an inbox file and a clock that runs faster, so that backoffs pass in a test's time. */
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createReceiver, type Receiver } from "../../../src/index.ts";
import { type SqliteDatabase, sqliteStore } from "../../../src/stores/sqlite.ts";
import { forward, type Publish, type Publisher } from "../../../src/tools/forward/index.ts";
import { incomingOf, signedRequest, TEST_SECRET } from "../../../src/tools/testing/index.ts";
import { recordedLog } from "../../receiver/bench.ts";
import { hurried } from "./hurried.ts";

/** How much faster the receivers' time runs: a backoff of a second takes 50 ms. */
const RATE = 20;

export interface Forwarding {
  readonly receiver: Receiver<SqliteDatabase>;
  readonly codes: () => unknown[];
  /** Delivers, and expects a 200. */
  accept(events: readonly object[]): Promise<void>;
  /** Resolves when everything accepted was handed to the engine. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export async function newInbox(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-forward-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "inbox.db");
}

/** Starts a receiver that forwards everything, late events too; it stops with the test. */
export async function startForwarding(publisher: Publish | Publisher, inbox?: string): Promise<Forwarding> {
  const { log, logger } = recordedLog();
  const receiver = createReceiver({
    secrets: TEST_SECRET,
    store: sqliteStore(inbox ?? (await newInbox())),
    clock: hurried(RATE),
    // In the test's time: half a second.
    handlerTimeoutMs: 500 * RATE,
    leaseMs: 500 * RATE,
    concurrency: 16,
    logger,
  });
  const handler = forward(publisher);
  receiver.onAny(handler).onLate(handler);
  await receiver.start();
  const stop = () => receiver.stop({ timeoutMs: 1_000 });
  onTestFinished(stop);
  return {
    receiver,
    stop,
    codes: () => log.map(({ fields }) => fields.code),
    async accept(events) {
      const requests = events.map((event) => incomingOf(signedRequest(event, { timestamp: receiver.clock.now() })));
      const answers = await Promise.all(requests.map((request) => receiver.handle(request)));
      const refused = answers.find(({ status }) => status !== 200);
      if (refused !== undefined) throw new Error(`A delivery was answered with ${refused.status}.`);
    },
    async settled() {
      const deadline = performance.now() + 20_000;
      while ((await receiver.inbox.stats()).gauges.pending > 0) {
        if (performance.now() > deadline) throw new Error("The inbox did not run empty.");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  };
}
