/** Every operation of the client as one table: its route, a call that the emulator takes, and the least that the service answers. */
import type { Operation as Answers } from "../../../src/messaging/client/checks.ts";
import type { CallOptions, Client } from "../../../src/messaging/client/index.ts";

export const RECIPIENT = "+14155550123";
/** A send that the emulator takes; its first number is the one that can do everything. */
export const SMS = {
  sendFrom: "num_000001",
  to: [RECIPIENT] as readonly string[],
  messageType: "SMS",
  text: "hello",
  externalReference: "order-1",
} as const;
export const MEDIUM = { storageKey: "media/1", mimeType: "image/png", byteLength: 1_024 } as const;
export const MMS = { ...SMS, messageType: "MMS", media: [MEDIUM] } as const;
const UPDATE = { signingEnabled: true, secret: "s".repeat(32) } as const;

export interface Operation {
  /** As in `client.messages.send`. */
  readonly name: string;
  readonly route: string;
  /** Whose success the answer is. */
  readonly answers: Answers;
  readonly call: (client: Client, options?: CallOptions) => Promise<unknown>;
}

const row = (name: string, route: string, answers: Answers, call: Operation["call"]) => ({
  name,
  route,
  answers,
  call,
});

export const OPERATIONS: readonly Operation[] = [
  row("whoami", "GET /api/core/whoami", "whoami", (client, given) => client.whoami(given)),
  row("webhooks.get", "GET /api/core/webhooks", "webhooks.get", ({ webhooks }, given) => webhooks.get(given)),
  row("webhooks.update", "PATCH /api/core/webhooks/inbound", "webhooks.update", ({ webhooks }, given) =>
    webhooks.update("inbound", UPDATE, given),
  ),
  row("numbers.list", "GET /api/core/numbers", "numbers.list", ({ numbers }, given) => numbers.list(given)),
  row("numbers.get", "GET /api/core/numbers", "numbers.list", ({ numbers }, given) => numbers.get("num_000001", given)),
  row("numbers.search", "POST /api/core/numbers/search", "numbers.search", ({ numbers }, given) =>
    numbers.search({ npa: "206" }, given),
  ),
  row("numbers.update", "PATCH /api/core/numbers/{numberId}", "numbers.update", ({ numbers }, given) =>
    numbers.update("num_000001", { smsEnabled: true }, given),
  ),
  row("messages.send", "POST /api/core/messages/send", "messages.send", ({ messages }, given) =>
    messages.send(SMS, given),
  ),
];

export const config = {
  ...{ eventClass: "INBOUND", scope: "API_CLIENT_DEFAULT", enabled: true, signingEnabled: true },
  ...{ hasCurrentSecret: true, hasPreviousSecret: false },
};
export const number = { numberId: "num_1", e164: "+12065550101", status: "ACTIVE", smsEnabled: true, mmsEnabled: true };

/** The least that each answers with; `text` stands for every text that means nothing to a program. */
export function leastAnswers(text: string) {
  const assignedNumbers = { total: 0, smsEnabledCount: 0, mmsEnabledCount: 0 };
  const groups = [{ rateCenter: text, count: 1, numbers: [{ e164: "+12065550110" }] }];
  return {
    whoami: {
      ...{ apiClientId: "ac_1", apiClientName: text, apiClientStatus: "ACTIVE", capabilities: [], assignedNumbers },
      ...{ inboundWebhookConfigured: false, deliveryWebhookConfigured: false },
    },
    "webhooks.get": {
      defaults: { inbound: config, delivery: config },
      overridesSummary: { inboundOverrideCount: 0, deliveryOverrideCount: 0 },
    },
    "webhooks.update": config,
    "numbers.list": { numbers: [number] },
    "numbers.search": { groups, requestedQuantity: 50 },
    "numbers.update": { number },
    "messages.send": {
      results: [{ to: RECIPIENT, messageId: "msg_1", status: "QUEUED" }],
      errors: [{ to: text, error: { code: "INVALID_RECIPIENT", message: text, details: {} } }],
    },
  } as const satisfies Record<Answers, object>;
}
