/** What the document says beyond the route table: notes and examples of routes, and the events with an example of each. */
import { z } from "zod";
import type { EventByType, KnownEventType } from "../../../sources/messaging/types.ts";

// What the schemas cannot say about a route: rules across fields, what the specification leaves open, examples.

/** An error's own words, where the shared ones of its status do not fit. */
export interface ErrorWords {
  readonly description: string;
  /** Of the example. */
  readonly message?: string;
}

/** A text with "Unspecified:" marks what it stands on. */
interface Note {
  readonly text?: readonly string[];
  /** Keywords of JSON Schema for the body as a whole. */
  readonly bodyRules?: Json;
  readonly parameters?: Readonly<Record<string, string>>;
  /** By status, instead of the shared words. */
  readonly errorWords?: Readonly<Record<number, ErrorWords>>;
  readonly requestExamples?: Readonly<Record<string, { readonly value: unknown }>>;
  readonly responseExample?: unknown;
}

const number = {
  numberId: "num_000001",
  e164: "+12065550101",
  status: "ACTIVE",
  campaignRegId: "C000001",
  smsEnabled: true,
  mmsEnabled: true,
  webhookInboundOverride: null,
  webhookDeliveryOverride: "https://example.com/webhooks",
};

const configuration = {
  eventClass: "DELIVERY",
  scope: "API_CLIENT_DEFAULT",
  enabled: true,
  signingEnabled: true,
  hasCurrentSecret: true,
  hasPreviousSecret: false,
  rotatedAt: 1_767_225_600_000,
};

/** Whether they are there at all is a reading. */
const NO_WEBHOOK_ROUTE: ErrorWords = {
  description: "Unspecified: this service has no such route.",
  message: "There is no such route.",
};

const updateOfWebhook: Note = {
  text: [
    "A field that is absent stays as it is; `endpointUrl: null` removes the target.",
    "Unspecified: error answers; that absent fields are kept; when a secret is generated (here: when signing is enabled, none was " +
      "given and there is none); that a new secret keeps the one before valid for 24 hours; that the URL is not in the answer.",
  ],
  errorWords: {
    400: {
      description: "Unspecified: the body does not fit, the URL is not an http or https URL, or the secret is empty.",
    },
    404: NO_WEBHOOK_ROUTE,
  },
  requestExamples: {
    enable: { value: { endpointUrl: "https://example.com/webhooks", enabled: true, signingEnabled: true } },
    disable: { value: { enabled: false, signingEnabled: false } },
  },
};

/** A first secret, generated: it replaced none, so nothing was rotated. */
const { rotatedAt: _, ...unrotated } = configuration;
const firstSecret = {
  ...unrotated,
  generatedSecret: "3f1c5a0d7e924b68a1f0c2d4e6b8093f5d7a9c1e2b4f60718293a4b5c6d7e8f9",
};

/** A condition that names what it asks for, as linters want it, and lets everything else be. */
function has(field: string, schema: Json = {}): Json {
  return { required: [field], properties: { [field]: schema }, unevaluatedProperties: true };
}

/** As if and then, because Prism, which users validate with, passes over `dependentRequired`. */
function requires(field: string, other: string): Json {
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return { if: has(field), then: has(other) };
}

/** By method and path. */
export const NOTES: Readonly<Record<string, Note>> = {
  "POST /api/auth/token": {
    text: [
      "Client credentials come by HTTP Basic, or as client_id and client_secret in the body; the form is the recommended body.",
      "Unspecified: both at once are taken when they are equal; a parameter that comes twice is an `invalid_request`.",
    ],
    requestExamples: {
      inBody: { value: { grant_type: "client_credentials", client_id: "client_main", client_secret: "the secret" } },
      withBasic: { value: { grant_type: "client_credentials" } },
    },
    responseExample: { access_token: "tok_000001", token_type: "bearer", expires_in: 3600 },
  },
  "GET /api/core/whoami": {
    text: [
      "The two webhook flags are true when at least one assigned number has an override of that kind; a default alone makes neither true.",
    ],
    responseExample: {
      apiClientId: "ac_main",
      apiClientName: "Main client",
      apiClientStatus: "ACTIVE",
      capabilities: ["numbers:read", "numbers:search", "numbers:update"],
      assignedNumbers: { total: 5, smsEnabledCount: 4, mmsEnabledCount: 4 },
      inboundWebhookConfigured: false,
      deliveryWebhookConfigured: true,
    },
  },
  "GET /api/core/webhooks": {
    text: [
      "Secrets are in no answer of this route.",
      "Unspecified: that the URL of a target is not in the answer; error answers.",
    ],
    errorWords: { 404: NO_WEBHOOK_ROUTE },
    responseExample: {
      defaults: {
        inbound: {
          eventClass: "INBOUND",
          scope: "API_CLIENT_DEFAULT",
          enabled: false,
          signingEnabled: false,
          hasCurrentSecret: false,
          hasPreviousSecret: false,
        },
        delivery: configuration,
      },
      overridesSummary: { inboundOverrideCount: 0, deliveryOverrideCount: 1 },
    },
  },
  "PATCH /api/core/webhooks/inbound": {
    ...updateOfWebhook,
    responseExample: { ...firstSecret, eventClass: "INBOUND" },
  },
  "PATCH /api/core/webhooks/delivery": { ...updateOfWebhook, responseExample: firstSecret },
  "GET /api/core/numbers": { responseExample: { numbers: [number] } },
  "POST /api/core/numbers/search": {
    text: [
      "nxx requires npa; city requires state; rateCenter requires state, and a search by rateCenter is currently refused in any case.",
      "Unspecified: formats and lengths of the fields (none is checked here); `{}` searches the whole inventory.",
    ],
    bodyRules: {
      description: "nxx requires npa; city and rateCenter require state; rateCenter is currently refused.",
      allOf: [requires("nxx", "npa"), requires("city", "state")],
      not: has("rateCenter"),
    },
    requestExamples: {
      byCity: { value: { city: "Fresno", state: "CA" } },
      byPrefix: { value: { npa: "206", nxx: "555" } },
    },
  },
  "PATCH /api/core/numbers/{numberId}": {
    text: [
      "The public way to set webhook overrides of a number. A field that is absent stays as it is. Read the number again after an update.",
      "The request spells `campaignregId` with a small r, the answer `campaignRegId` with a capital one; the other spelling is not an alias.",
      "Unspecified: that `{}` changes nothing; that an override is an http or https URL; the order of the errors 400, 404 and 403.",
    ],
    parameters: { numberId: "The number's identifier, percent-encoded." },
    errorWords: {
      400: { description: "The body does not fit, an override is not a valid URL, or the number is inactive." },
    },
    requestExamples: {
      override: { value: { webhookDeliveryOverride: "https://example.com/webhooks" } },
      campaign: { value: { campaignregId: "C000001" } },
    },
    responseExample: { number },
  },
  "POST /api/core/messages/send": {
    text: [
      "202 means queued only; the result comes by webhook. A recipient that is not an E.164 number is in `errors`, the others in `results`.",
      "`sendFrom` is a numberId with a campaign id, never an E.164 number. MMS requires media; SMS must not have any.",
      "The same key with the same payload is safe to repeat and sends nothing twice.",
      "Unspecified: limits; that an empty `media` counts as media for SMS and as none for MMS; that a number that is disabled for the " +
        "type or not active gives 400; that 202 with empty `results` answers when every recipient is rejected.",
    ],
    bodyRules: {
      description: "MMS requires media; SMS must not have any.",
      if: { properties: { messageType: { const: "MMS" } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: has("media", { minItems: 1 }),
      else: { not: has("media") },
    },
    errorWords: {
      400: {
        description:
          "No Idempotency-Key, a body that does not fit, media that do not fit the type, or a number without campaign id.",
      },
    },
    requestExamples: {
      sms: {
        value: {
          sendFrom: "num_000001",
          to: ["+14155550123"],
          messageType: "SMS",
          text: "hello",
          externalReference: "order-1",
        },
      },
      mms: {
        value: {
          sendFrom: "num_000001",
          to: ["+14155550123"],
          messageType: "MMS",
          media: [{ storageKey: "media/1.png", mimeType: "image/png", byteLength: 1024 }],
          externalReference: "order-2",
        },
      },
    },
    responseExample: {
      results: [{ to: "+14155550123", messageId: "msg_a8244c_000001", status: "QUEUED" }],
      errors: [{ to: "555-0100", error: { code: "INVALID_RECIPIENT", message: "Not an E.164 number.", details: {} } }],
    },
  },
};

export function noteOf({ method, path }: { readonly method: string; readonly path: string }): Note {
  return NOTES[`${method} ${path}`] ?? {};
}

/** A part of the document. */
export type Json = { readonly [name: string]: unknown };

// The events as the specification's field tables have them, and an example of each, for the document.

// The events as the specification's field tables have them, for the document. The receiver's own schemas take more, for it must
// not refuse an event over a field it can do without.

const epochMs = z.int().describe("Epoch milliseconds");

const common = { occurredAt: epochMs, apiClientId: z.string() };

const outbound = {
  ...common,
  direction: z.literal("outbound"),
  messageId: z.string().describe("The same as `data.messageId`"),
  sequence: z
    .int()
    .describe(
      "Orders the events of a message: queued 1, sent 2, delivery 3; there can be gaps. Unspecified: its range",
    ),
};

const error = z.looseObject({
  code: z.string(),
  message: z.string(),
  details: z.looseObject({}),
});

const outboundData = {
  messageId: z.string(),
  externalReference: z.string().describe("From the send request"),
  sendFrom: z.string().describe("The sending number in E.164; the request's field of this name is its numberId"),
  to: z.string().describe("E.164"),
};

/** It stays a string: a closed list would refuse what EVT-13 leaves open. */
const status = z.string();

const unfailed = error.nullable().describe("Null unless the message failed");

export const documentedEvents = {
  "message.queued": z.looseObject({
    eventType: z.literal("message.queued"),
    ...outbound,
    data: z.looseObject({ ...outboundData, status, error: unfailed }),
  }),
  "message.sent": z.looseObject({
    eventType: z.literal("message.sent"),
    ...outbound,
    data: z.looseObject({ ...outboundData, status, error: unfailed }),
  }),
  "message.delivery": z.looseObject({
    eventType: z.literal("message.delivery"),
    ...outbound,
    data: z.looseObject({
      ...outboundData,
      status: status.describe(
        "Unspecified: other values than that of the example, which are possible on message.delivery",
      ),
      error: unfailed,
      providerMessageRef: z.string(),
    }),
  }),
  "message.failed": z.looseObject({
    eventType: z.literal("message.failed"),
    ...outbound,
    data: z.looseObject({ ...outboundData, status, error }),
  }),
  "message.inbound": z.looseObject({
    eventType: z.literal("message.inbound"),
    direction: z.literal("inbound"),
    ...common,
    data: z.looseObject({
      messageId: z.string(),
      conversationId: z.string(),
      numberId: z.string().describe("The receiving number's"),
      from: z.string(),
      to: z.string(),
      body: z.string(),
      media: z.array(z.unknown().describe("Unspecified: the fields of an item are not shown")),
      timestamp: epochMs,
    }),
  }),
} satisfies Record<KnownEventType, z.ZodType>;

// An example of each event for the document; a test holds them against their schemas.

const outboundExample = {
  direction: "outbound",
  apiClientId: "ac_main",
  messageId: "msg_a8244c_000001",
} as const;

const data = {
  messageId: "msg_a8244c_000001",
  externalReference: "order-1",
  sendFrom: "+12065550101",
  to: "+14155550123",
  error: null,
};

export const eventExamples: EventByType = {
  "message.queued": {
    eventType: "message.queued",
    ...outboundExample,
    sequence: 1,
    occurredAt: 1_767_225_600_000,
    data: { ...data, status: "QUEUED" },
  },
  "message.sent": {
    eventType: "message.sent",
    ...outboundExample,
    sequence: 2,
    occurredAt: 1_767_225_601_000,
    data: { ...data, status: "sent" },
  },
  "message.delivery": {
    eventType: "message.delivery",
    ...outboundExample,
    sequence: 3,
    occurredAt: 1_767_225_605_000,
    data: { ...data, status: "delivered", providerMessageRef: "provider_a8244c_000001" },
  },
  "message.failed": {
    eventType: "message.failed",
    ...outboundExample,
    sequence: 4,
    occurredAt: 1_767_225_605_000,
    data: {
      ...data,
      status: "failed",
      error: { code: "PROVIDER_SEND_FAILED", message: "The provider did not take the message.", details: {} },
    },
  },
  "message.inbound": {
    eventType: "message.inbound",
    direction: "inbound",
    apiClientId: "ac_main",
    occurredAt: 1_767_225_600_000,
    data: {
      messageId: "msg_a8244c_000003",
      conversationId: "conv_000001",
      numberId: "num_000001",
      from: "+14155550123",
      to: "+12065550101",
      body: "hello",
      media: [],
      timestamp: 1_767_225_600_000,
    },
  },
};
