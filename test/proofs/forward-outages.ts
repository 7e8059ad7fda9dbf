/** Sends messages through the emulator to a receiver that forwards to both engines, while engines and receiver go down in turn. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver, type Receiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createEmulator, type Emulator } from "../../src/messaging/emulator/index.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { forward, type Publisher } from "../../src/tools/forward/index.ts";
import { type EngineBehindProxy, openBullmq, openJetStream } from "../tools/forward/engines.ts";
import { type Faults, faultsAmong, nameOf } from "../tools/forward/held.ts";
import { hurried } from "../tools/forward/hurried.ts";
import { connect, WITHOUT_GAPS } from "./application.ts";

export interface Arrival {
  readonly events: number;
  readonly failedAttempts: number;
  /** Handlings that failed and were tried again. */
  readonly retried: number;
  /** Attempts to publish, of both engines. */
  readonly published: number;
  /** Publications of events that came after a later one of their message had been handled. */
  readonly late: number;
  readonly jetstream: Faults;
  readonly bullmq: Faults;
}

export interface Plan {
  readonly messages: number;
  /** How much faster the receiver's time runs. */
  readonly rate: number;
  say(line: string): void;
}

const SECRET = "the-current-secret-of-32-bytes-x";
const MINUTE_MS = 60_000;
/** All of a delivery's attempts, and a message that comes 90 minutes late. */
const ALL_ATTEMPTS_MS = 180 * MINUTE_MS;
const OUTAGE_MS = 400;
const SETTLE_LIMIT_MS = 120_000;

type Outage = "none" | "jetstream silent" | "bullmq silent" | "jetstream down" | "bullmq down" | "receiver down";
const OUTAGES: readonly Outage[] = [
  "jetstream silent",
  "bullmq silent",
  "receiver down",
  "jetstream down",
  "bullmq down",
];

/** Every batch of messages meets an outage of its own, in the midst of its events. */
export async function forwardThroughOutages({ messages, rate, say }: Plan): Promise<Arrival> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-forward-"));
  const engines = { jetstream: await openJetStream(), bullmq: await openBullmq() };
  const application = new Application(join(folder, "inbox.db"), engines, rate);
  await application.start();
  const url = `http://127.0.0.1:${application.port}/webhooks`;
  const emulator = await createEmulator({
    port: null,
    seed: "forward",
    inboundUrl: url,
    deliveryUrl: url,
    webhookSecret: SECRET,
    logger: silentLogger,
  });
  try {
    const names = new Set<string>();
    const service = connect(emulator, {}, WITHOUT_GAPS);
    const perBatch = Math.ceil(messages / Math.max(OUTAGES.length, messages / 1_000));
    let failedAttempts = 0;
    for (let first = 0, batch = 0; first < messages; first += perBatch, batch++) {
      const since = emulator.clock.now();
      const last = Math.min(first + perBatch, messages);
      for (let number = first; number < last; number++) await service.send(number);
      const outage = OUTAGES[batch % OUTAGES.length] ?? "none";
      await Promise.all([happen(outage, application, engines), emulator.clock.advance(MINUTE_MS)]);
      await emulator.clock.advance(ALL_ATTEMPTS_MS);
      for (const { messageId, sequence } of emulator.control.events({ since, limit: 10_000 }))
        names.add(nameOf({ messageId: messageId ?? "", sequence: sequence ?? 0 }));
      failedAttempts += failuresSince(emulator, since);
      say(`${last} messages, ${names.size} events (${outage})`);
    }
    await application.settled();
    const wanted = [...names];
    return {
      events: wanted.length,
      failedAttempts,
      retried: application.retried,
      published: application.published,
      late: application.late,
      jetstream: faultsAmong(await engines.jetstream.held(), wanted),
      bullmq: faultsAmong(await engines.bullmq.held(), wanted),
    };
  } finally {
    await emulator.close();
    await application.stop();
    await engines.jetstream.close();
    await engines.bullmq.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Engines {
  readonly jetstream: EngineBehindProxy;
  readonly bullmq: EngineBehindProxy;
}

async function happen(outage: Outage, application: Application, { jetstream, bullmq }: Engines): Promise<void> {
  switch (outage) {
    case "none":
      return;
    case "jetstream silent":
      return silence(jetstream);
    case "bullmq silent":
      return silence(bullmq);
    case "jetstream down":
      return takeDown(jetstream);
    case "bullmq down":
      return takeDown(bullmq);
    case "receiver down":
      await application.stop();
      await pause(OUTAGE_MS);
      return application.start();
    default:
      return outage satisfies never;
  }
}

/** What the engine gets meanwhile it keeps, and the receiver never hears of it. */
async function silence({ proxy }: EngineBehindProxy): Promise<void> {
  proxy.hold();
  await pause(OUTAGE_MS);
  proxy.cut();
  proxy.release();
}

async function takeDown({ proxy }: EngineBehindProxy): Promise<void> {
  await proxy.down();
  await pause(OUTAGE_MS);
  await proxy.up();
}

function failuresSince(emulator: Emulator, since: number): number {
  const deliveries = emulator.control.deliveries({ since, limit: 10_000 });
  const attempts = deliveries.flatMap((delivery) => delivery.attempts);
  return attempts.filter(({ status }) => status === null || status < 200 || status > 299).length;
}

/** A receiver behind a server that can be stopped and started on the same port and inbox. */
class Application {
  readonly #inbox: string;
  readonly #engines: Engines;
  readonly #rate: number;
  #server: Server | null = null;
  #receiver: Receiver<SqliteDatabase> | null = null;
  port = 0;
  retried = 0;
  published = 0;
  late = 0;

  constructor(inbox: string, engines: Engines, rate: number) {
    this.#inbox = inbox;
    this.#engines = engines;
    this.#rate = rate;
  }

  async start(): Promise<void> {
    const receiver = createReceiver({
      secrets: SECRET,
      store: sqliteStore(this.#inbox),
      clock: hurried(this.#rate),
      // Longer than an outage in the receiver's time, so that attempts end by the engine's error or by this.
      handlerTimeoutMs: 500 * this.#rate,
      leaseMs: 1_000 * this.#rate,
      concurrency: 64,
      // In the emulator's time a retry comes at once, in the receiver's after many of its minutes: no gap is given up.
      gapWait: "strict",
      logger: silentLogger,
    });
    const toJetStream = forward(this.#counted(this.#engines.jetstream.publisher));
    const toBullmq = forward(this.#counted(this.#engines.bullmq.publisher));
    receiver.onAny(toJetStream).onAny(toBullmq).onLate(toJetStream).onLate(toBullmq);
    receiver.onError(() => {
      this.retried += 1;
    });
    await receiver.start();
    const server = createServer(nodeWebhook(receiver));
    server.listen(this.port, "127.0.0.1");
    await once(server, "listening");
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#receiver = receiver;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    this.#server?.close();
    await this.#receiver?.stop({ timeoutMs: 0 });
    this.#server = null;
    this.#receiver = null;
  }

  async settled(): Promise<void> {
    const deadline = performance.now() + SETTLE_LIMIT_MS;
    while (((await this.#receiver?.inbox.stats())?.gauges.pending ?? 0) > 0 && performance.now() < deadline) {
      await pause(20);
    }
  }

  #counted(publisher: Publisher): Publisher {
    return {
      ...publisher,
      publish: (message) => {
        this.published += 1;
        if (message.headers["oncehook-late"] !== undefined) this.late += 1;
        return publisher.publish(message);
      },
    };
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
