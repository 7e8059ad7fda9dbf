/** The service, our client and our receiver on one clock, which lets hours pass between two rotations. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver, type Receiver } from "../../src/index.ts";
import type { Clock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type Client, createClient } from "../../src/messaging/client/index.ts";
import { createEmulator, type Emulator } from "../../src/messaging/emulator/index.ts";
import { adoptSecret, type SecretStore } from "../../src/messaging/rotation/index.ts";
import { type SqliteDatabase, sqliteSecrets, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock, type FakeClock } from "../../src/tools/testing/index.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { type HandledRow, type Watched, watched } from "./ledger.ts";
import { type Front, openFront } from "./rotations-front.ts";

/** How the service signs: which secret while two are valid (DLV-16), and whether a retry keeps its signature (DLV-17). */
export interface Signing {
  readonly overlapSigning: "current" | "previous" | "both" | "alternate";
  readonly retrySignature: "fresh" | "frozen";
}

export interface Scene extends Watched {
  readonly clock: FakeClock;
  readonly receiverClock: GrainedClock;
  readonly emulator: Emulator;
  readonly client: Client;
  readonly receiver: Receiver<SqliteDatabase>;
  /** For who rotates; the receiver reads the same file through another store, as another process does. */
  readonly secrets: SecretStore;
  readonly front: Front;
  /** What its handlers did, in that order. */
  readonly handled: readonly HandledRow[];
  close(): Promise<void>;
}

export interface SceneOptions {
  readonly signing: Signing;
  readonly overlapMs: number;
  /** Of the receiver's timers. */
  readonly grainMs: number;
}

const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 0, 1);

export async function createScene({ signing, overlapMs, grainMs }: SceneOptions): Promise<Scene> {
  const clock = createFakeClock(START);
  const receiverClock = grained(clock, grainMs);
  const receiving = await createReceiving(receiverClock);
  const { front, secrets } = receiving;
  const webhookSecret = randomBytes(32).toString("hex");
  await adoptSecret({ kind: "delivery", secrets, secret: webhookSecret });
  await receiving.receiver.start();
  const emulator = await createEmulator({
    port: null,
    clock: "real",
    systemClock: clock,
    deliveryUrl: front.url,
    webhookSecret,
    lifecycle: "instant",
    unspecified: { ...signing, overlapMs },
    attemptTimeoutMs: 600_000, // Of the same clock, which goes on while a request is under way.
    logger: silentLogger,
  });
  const close = async () => {
    await emulator.close();
    await receiving.close();
  };
  return { ...receiving, ...watched(emulator), clock, receiverClock, emulator, client: clientOf(emulator), close };
}

function clientOf(emulator: Emulator): Client {
  return createClient({
    baseUrl: emulator.url,
    clientId: emulator.clientId,
    clientSecret: emulator.clientSecret,
    fetch: (input, init) => emulator.handle(new Request(input, init)),
    validateResponses: "throw",
    logger: silentLogger,
  });
}

async function createReceiving(
  clock: Clock,
): Promise<Pick<Scene, "receiver" | "secrets" | "front" | "handled" | "close">> {
  // Hours of heartbeats are thousands of commits, and no power is cut here.
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-rotation-"));
  const path = join(folder, "inbox.db");
  const keyFile = join(folder, "webhook.key");
  writeFileSync(keyFile, randomBytes(32).toString("hex"), { mode: 0o600 });
  const secrets = sqliteSecrets(path, { keyFile, clock });
  const ownSecrets = sqliteSecrets(path, { keyFile, clock });
  const receiver = createReceiver({
    secrets: ownSecrets,
    store: sqliteStore(path, { minFreeBytes: 0 }),
    retention: { handledBodiesMs: DAY_MS },
    clock,
    gapWait: "strict",
    logger: silentLogger,
  });
  const handled: HandledRow[] = [];
  receiver.onAny((event, ctx) => {
    const {
      messageId = null,
      sequence = 0,
      eventType,
    } = event as Partial<Record<"messageId" | "sequence", never>> & typeof event;
    ctx.commit((_tx) => void handled.push({ message_id: messageId, sequence, event_type: eventType }));
  });
  const front = await openFront(nodeWebhook(receiver));
  const close = async () => {
    await front.close();
    await receiver.stop();
    await Promise.all([secrets.close(), ownSecrets.close()]);
    rmSync(folder, { recursive: true, force: true });
  };
  return { receiver, secrets, front, handled, close };
}

/** A clock whose timers ring late, together: a receiver that looks around ten times a second would be most of what hours cost. */
interface GrainedClock extends Clock {
  /** Timers that are set from now on ring at multiples of it, milliseconds. */
  grainMs: number;
}

function grained(clock: Clock, grainMs: number): GrainedClock {
  return {
    grainMs,
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout(callback, ms) {
      const now = clock.monotonic();
      return clock.setTimeout(callback, Math.ceil((now + ms) / this.grainMs) * this.grainMs - now);
    },
  };
}
