/** Every route of the API, once: for the router, the OpenAPI document and the tests. */
import type { Route } from "../http/route.ts";
import { listNumbers, updateNumber } from "./numbers.ts";
import { searchNumbers } from "./search.ts";
import { sendMessages } from "./send.ts";
import { token } from "./token.ts";
import { getWebhooks, updateDeliveryWebhook, updateInboundWebhook } from "./webhooks.ts";
import { whoami } from "./whoami.ts";

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
