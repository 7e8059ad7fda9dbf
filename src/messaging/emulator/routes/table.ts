/** Every route of the API, once: for the router, the OpenAPI document and the tests. */
import { z } from "zod";
import { reply } from "../http/answers.ts";
import { coreRoute, type Route } from "../http/route.ts";
import { listNumbers, searchNumbers, updateNumber } from "./numbers.ts";
import { sendMessages } from "./send.ts";
import { token } from "./token.ts";
import { getWebhooks, updateDeliveryWebhook, updateInboundWebhook } from "./webhooks.ts";

// `GET /api/core/whoami`: who a client is and what it has.

const whoamiSchema = z.looseObject({
  apiClientId: z.string(),
  apiClientName: z.string(),
  apiClientStatus: z.string().describe("ACTIVE is the value for a usable client. Unspecified: others"),
  capabilities: z
    .array(z.string())
    .describe("Seen: numbers:read, numbers:search, numbers:update. Unspecified: whether there are others"),
  assignedNumbers: z.looseObject({ total: z.int(), smsEnabledCount: z.int(), mmsEnabledCount: z.int() }),
  inboundWebhookConfigured: z.boolean(),
  deliveryWebhookConfigured: z.boolean(),
});

const whoami = coreRoute({
  method: "GET",
  path: "/api/core/whoami",
  operationId: "whoami",
  summary: "The identity, capabilities and numbers of the calling client",
  success: { status: 200, description: "Who calls", schema: whoamiSchema },
  errors: [],
  handle({ service, client }) {
    const numbers = [...service.state.numbers.values()].filter(({ apiClientId }) => apiClientId === client.apiClientId);
    return reply(200, {
      apiClientId: client.apiClientId,
      apiClientName: client.name,
      apiClientStatus: client.status,
      capabilities: client.capabilities,
      // Flags are counted whatever the number's status (WHO-3).
      assignedNumbers: {
        total: numbers.length,
        smsEnabledCount: numbers.filter(({ smsEnabled }) => smsEnabled).length,
        mmsEnabledCount: numbers.filter(({ mmsEnabled }) => mmsEnabled).length,
      },
      // Overrides of numbers only: a default alone makes neither true (WHO-6).
      inboundWebhookConfigured: numbers.some(({ webhookInboundOverride }) => webhookInboundOverride !== null),
      deliveryWebhookConfigured: numbers.some(({ webhookDeliveryOverride }) => webhookDeliveryOverride !== null),
    });
  },
});

// Every route of the API, once: for the router, the OpenAPI document and the tests.

export const ROUTES: readonly Route[] = [
  token,
  whoami,
  getWebhooks,
  updateInboundWebhook,
  updateDeliveryWebhook,
  listNumbers,
  searchNumbers,
  updateNumber,
  sendMessages,
];
