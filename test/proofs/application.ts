/** The sending side of an application, which speaks to an emulator through our own client. */

import { silentLogger } from "../../src/internal/logger.ts";
import { type Client, createClient } from "../../src/messaging/client/client.ts";
import type { ClientOptions } from "../../src/messaging/client/options.ts";
import type { Emulator, FaultRule } from "../../src/messaging/emulator/index.ts";

const MINUTE_MS = 60_000;
/** Every tenth recipient is special: twice, reversed, failing in three ways, answering, 90 minutes late. */
const SPECIAL: readonly string[] = ["05", "06", "01", "02", "03", "08", "07"].map((end) => `+150055500${end}`);
/** For receivers that wait for each gap until it closes: none of these leaves one for ever. */
export const WITHOUT_GAPS = SPECIAL.filter((number) => !number.endsWith("03"));

/** What goes wrong with deliveries on their way. */
export const DELIVERY_FAULTS: readonly FaultRule[] = [
  { match: { webhook: true }, action: { type: "duplicate" }, probability: 0.15 },
  { match: { webhook: true }, action: { type: "reorder" }, probability: 0.15 },
  { match: { webhook: true }, action: { type: "delay", ms: 2 * MINUTE_MS }, probability: 0.1 },
];

export interface Application {
  readonly client: Client;
  /** Another signing secret for both kinds; the one before stays valid for a while. */
  rotate(secret: string): Promise<void>;
  /** One message. With every tenth a customer's comes in. */
  send(number: number): Promise<void>;
}

/** Without a socket. What breaks the connection rejects, as `fetch` does. */
export function connect(
  emulator: Emulator,
  options: Partial<ClientOptions> = {},
  recipients: readonly string[] = SPECIAL,
): Application {
  const { url: baseUrl, clientId, clientSecret, fixtures } = emulator;
  const { full } = fixtures.numbers;
  const handled: typeof fetch = async (input, init) => {
    const response = await emulator.handle(new Request(input, init));
    if (response.type === "error") throw new TypeError("fetch failed");
    return response;
  };
  const client = createClient({ baseUrl, clientId, clientSecret, fetch: handled, logger: silentLogger, ...options });
  return {
    client,
    async rotate(secret) {
      for (const kind of ["inbound", "delivery"] as const)
        await client.webhooks.update(kind, { signingEnabled: true, secret });
    },
    async send(number) {
      await sendOne(client, number, full, recipients);
      if (number % 10 === 5) emulator.control.inbound({ to: full, from: "+14155550124", body: `answer ${number}` });
    },
  };
}

export async function sendOne(client: Client, number: number, sendFrom: string, recipients = SPECIAL): Promise<void> {
  const special = number % 10 === 0 ? recipients[(number / 10) % recipients.length] : undefined;
  const to = special ?? `+1415555${String(1_000 + (number % 9_000))}`;
  const message = { sendFrom, to: [to], messageType: "SMS", text: "hello" } as const;
  const sent = await client.messages.send({ ...message, externalReference: `order-${number}` });
  sent.throwIfRejected();
}
