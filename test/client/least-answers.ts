/** The least that each operation answers with. */
import type { Operation } from "../../src/client/checks.ts";

export const config = {
  eventClass: "INBOUND",
  scope: "API_CLIENT_DEFAULT",
  enabled: true,
  signingEnabled: true,
  hasCurrentSecret: true,
  hasPreviousSecret: false,
};
export const number = { numberId: "num_1", e164: "+12065550101", status: "ACTIVE", smsEnabled: true, mmsEnabled: true };
export const available = { e164: "+12065550110" };

/** With `text` in the place of every text that means nothing to a program. */
export function leastAnswers(text: string) {
  return {
    whoami: {
      apiClientId: "ac_1",
      apiClientName: text,
      apiClientStatus: "ACTIVE",
      capabilities: [],
      assignedNumbers: { total: 0, smsEnabledCount: 0, mmsEnabledCount: 0 },
      inboundWebhookConfigured: false,
      deliveryWebhookConfigured: false,
    },
    "webhooks.get": {
      defaults: { inbound: config, delivery: config },
      overridesSummary: { inboundOverrideCount: 0, deliveryOverrideCount: 0 },
    },
    "webhooks.update": config,
    "numbers.list": { numbers: [number] },
    "numbers.search": { groups: [{ rateCenter: text, count: 1, numbers: [available] }], requestedQuantity: 50 },
    "numbers.update": { number },
    "messages.send": {
      results: [{ to: "+14155550123", messageId: "msg_1", status: "QUEUED" }],
      errors: [{ to: text, error: { code: "INVALID_RECIPIENT", message: text, details: {} } }],
    },
  } as const satisfies Record<Operation, object>;
}
