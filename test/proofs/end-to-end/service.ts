/** The service of a run, and the application's sending side, which speaks to it through our own client. */
import { type Client, createClient } from "../../../src/client/client.ts";
import { createEmulator, type Emulator, type FaultRule } from "../../../src/emulator/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import type { FakeClock } from "../../../src/testing/index.ts";
import { nameOf, type Reading } from "./readings.ts";

const MINUTE_MS = 60_000;
/** So long two secrets are valid after a rotation. */
export const OVERLAP_MS = 30 * MINUTE_MS;

const FAULTS: readonly FaultRule[] = [
  { match: { webhook: true }, action: { type: "duplicate" }, probability: 0.15 },
  { match: { webhook: true }, action: { type: "reorder" }, probability: 0.15 },
  { match: { webhook: true }, action: { type: "delay", ms: 2 * MINUTE_MS }, probability: 0.1 },
  { match: { eventType: "message.queued" }, action: { type: "eventBeforeResponse" }, probability: 0.1 },
  { match: { route: "POST /api/core/messages/send" }, action: { type: "status", status: 500 }, probability: 0.03 },
  { match: { route: "POST /api/core/messages/send" }, action: { type: "reset", when: "after" }, probability: 0.03 },
];

/** Every tenth recipient is special: twice, reversed, failing in three ways, answering, 90 minutes late. */
const SPECIAL = ["05", "06", "01", "02", "03", "08", "07"].map((end) => `+150055500${end}`);

export interface Service {
  readonly emulator: Emulator;
  readonly client: Client;
  /** One message. With every tenth a customer's comes in. */
  send(number: number): Promise<void>;
}

/** Both on `clock`. */
export async function createService(reading: Reading, clock: FakeClock): Promise<Service> {
  const emulator = await createEmulator({
    port: null,
    clock: "real",
    systemClock: clock,
    seed: nameOf(reading),
    unspecified: { ...reading, overlapMs: OVERLAP_MS },
    faults: FAULTS,
    attemptTimeoutMs: 600_000, // Of the same clock, which goes on while a request is under way.
    logger: silentLogger,
  });
  const client = createClient({
    baseUrl: emulator.url,
    clientId: emulator.clientId,
    clientSecret: emulator.clientSecret,
    clock,
    fetch: fetchFrom(emulator),
    maxRetries: 5,
    validateResponses: "throw",
    logger: silentLogger,
  });
  const { full } = emulator.fixtures.numbers;
  const send = async (number: number) => {
    const special = number % 10 === 0 ? SPECIAL[(number / 10) % SPECIAL.length] : undefined;
    const to = special ?? `+1415555${String(1_000 + number)}`;
    const message = { sendFrom: full, to: [to], messageType: "SMS", text: "hello" } as const;
    const sent = await client.messages.send({ ...message, externalReference: `order-${number}` });
    sent.throwIfRejected();
    if (number % 10 === 5) emulator.control.inbound({ to: full, from: "+14155550124", body: `answer ${number}` });
  };
  return { emulator, client, send };
}

/** The emulator as a network: what breaks its connection rejects, as `fetch` does. */
function fetchFrom(emulator: Emulator): typeof fetch {
  return async (input, init) => {
    const response = await emulator.handle(new Request(input, init));
    if (response.type === "error") throw new TypeError("fetch failed");
    return response;
  };
}
