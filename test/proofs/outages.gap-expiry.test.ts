/** Receiver and emulator in one process on one fake clock: what becomes of events that come after their gap was given up. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver, type WebhookEvent } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createEmulator, type Emulator, type EmulatorOptions } from "../../src/messaging/emulator/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock, seededRandom } from "../../src/tools/testing/index.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { connect } from "./application.ts";

const SECRET = "one-secret-for-both-sides-of-32-b";
const MINUTE_MS = 60_000;
/** The receiver's default waits for what is missing: 22 minutes, 90 seconds before a `message.failed`. */
const WAIT_MS = 22 * MINUTE_MS;
const WAIT_BEFORE_FAILED_MS = 90_000;
/** How far the clock goes at once; what is sent within a step arrives at its end. */
const STEP_MS = 30_000;

interface Run {
  readonly messages: number;
  readonly minutes: number;
  readonly gapWait: "balanced" | "strict";
  /** The share of deliveries that the receiver answers with 503. */
  readonly refused: number;
  readonly options: EmulatorOptions;
}

describe("a receiver and the emulator on one clock", { timeout: 120_000 }, () => {
  it("handles each event or calls it late, late only behind a gap that was waited for (RCV-6, RCV-7, DLV-8, DLV-10)", async () => {
    const { arrivals, handled, late } = await run({
      messages: 100,
      minutes: 150,
      gapWait: "balanced",
      refused: 0,
      options: {
        profile: "hostile",
        faults: [
          { match: { webhook: true }, action: { type: "delay", ms: 30 * MINUTE_MS }, probability: 0.08 },
          { match: { webhook: true }, action: { type: "drop" }, probability: 0.04 },
        ],
      },
    });
    expect([...handled, ...late].sort()).toEqual(namesOf(arrivals));
    expect(late.length).toBeGreaterThan(3);
    for (const name of late) expect(gapWasGivenUpBefore(name, arrivals)).toBe(true);
    expectAscending(handled);
  });

  it("calls late what comes with the last retries, when it waits for the first ones only (balanced; RCV-7)", {
    tags: "full",
  }, async () => {
    const { arrivals, handled, late } = await run(mostlyRefused("balanced"));
    expect([...handled, ...late].sort()).toEqual(namesOf(arrivals));
    expect(late.length).toBeGreaterThan(0);
    for (const name of late) expect(gapWasGivenUpBefore(name, arrivals)).toBe(true);
    expectAscending(handled);
  });

  it("calls nothing late when it waits for all retries (strict; RCV-7, DLV-6)", { tags: "full" }, async () => {
    const { arrivals, handled, late } = await run(mostlyRefused("strict"));
    expect(late).toEqual([]);
    expect([...handled].sort()).toEqual(namesOf(arrivals));
    expect(arrivals.length).toBeGreaterThan(200);
    expectAscending(handled);
  });
});

/** Three deliveries of five are refused, so that events come with any of their attempts, or never. */
function mostlyRefused(gapWait: Run["gapWait"]): Run {
  return { messages: 100, minutes: 200, gapWait, refused: 0.6, options: { profile: "strict" } };
}

const namesOf = (arrivals: readonly Arrival[]) => arrivals.map(({ name }) => name).sort();

interface Arrival {
  readonly name: string;
  readonly messageId: string;
  readonly sequence: number;
  readonly eventType: string;
  /** Of the first attempt that was answered with 2xx. */
  readonly at: number;
}

/** Both sides at work. */
async function run({ messages, minutes, gapWait, refused, options }: Run) {
  const clock = createFakeClock(Date.UTC(2026, 0, 1));
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-gaps-"));
  const store = sqliteStore(join(folder, "inbox.db"), { minFreeBytes: 0 });
  const receiver = createReceiver({ secrets: SECRET, store, clock, gapWait, logger: silentLogger });
  const handled: string[] = [];
  const late: string[] = [];
  receiver.onAny((event) => void handled.push(nameOf(event)));
  receiver.onLate((event) => void late.push(nameOf(event)));
  await receiver.start();
  const random = seededRandom(7);
  const webhook = nodeWebhook(receiver);
  const server = await serve((request, response) => {
    if (random() < refused) response.writeHead(503).end();
    else void webhook(request, response);
  });
  const emulator = await createEmulator({
    port: null,
    clock: "real",
    systemClock: clock,
    deliveryUrl: server.url,
    inboundUrl: server.url,
    webhookSecret: SECRET,
    attemptTimeoutMs: 600_000, // Of the same clock, which goes on while a request is under way.
    logger: silentLogger,
    ...options,
  });
  onTestFinished(async () => {
    await emulator.close();
    await server.close();
    await receiver.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const sender = connect(emulator);
  for (let number = 0; number < messages; number++) await sender.send(number);
  for (let passed = 0; passed < minutes * MINUTE_MS; passed += STEP_MS) {
    await emulator.clock.idle();
    await clock.advance(STEP_MS);
  }
  return { arrivals: arrivalsOf(emulator), handled, late };
}

async function serve(listener: RequestListener) {
  const server = createServer(listener);
  const port = await listenOnLoopback(server);
  return { url: `http://127.0.0.1:${port}/webhooks`, close: () => endServer(server) };
}

/** By event, since several deliveries can carry the same one. */
function arrivalsOf({ control }: Emulator): Arrival[] {
  const deliveries = control.deliveries({ limit: 10_000 });
  return control.events({ limit: 10_000 }).flatMap((event) => {
    const times = deliveries
      .filter(({ eventId }) => eventId === event.eventId)
      .flatMap(({ attempts }) => attempts.filter(({ status }) => status === 200).map(({ at }) => at));
    if (times.length === 0) return [];
    const { messageId, eventType, sequence } = event;
    return [
      { name: nameOf(JSON.parse(event.body)), messageId, eventType, sequence: sequence ?? 0, at: Math.min(...times) },
    ];
  });
}

/** Whether a later event of the message had already waited its full time when this one came. */
function gapWasGivenUpBefore(name: string, arrivals: readonly Arrival[]): boolean {
  const late = arrivals.find((arrival) => arrival.name === name);
  if (late === undefined) return false;
  return arrivals.some((other) => {
    const wait = other.eventType === "message.failed" ? WAIT_BEFORE_FAILED_MS : WAIT_MS;
    return other.messageId === late.messageId && other.sequence > late.sequence && other.at + wait <= late.at + STEP_MS;
  });
}

function expectAscending(handled: readonly string[]): void {
  const highest = new Map<string, number>();
  for (const name of handled) {
    const [messageId = "", sequence] = name.split(" ");
    expect(Number(sequence), name).toBeGreaterThan(highest.get(messageId) ?? -1);
    highest.set(messageId, Number(sequence));
  }
}

function nameOf(event: WebhookEvent): string {
  const { messageId, sequence, eventType, data } = event as {
    messageId?: string;
    sequence?: number;
    eventType: string;
    data: { messageId: string };
  };
  return `${messageId ?? data.messageId} ${sequence ?? 0} ${eventType}`;
}
