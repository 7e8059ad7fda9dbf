/** Calls of every route, with each answer that docs/openapi.json promises. */
import type { Emulator, EmulatorOptions } from "../../../src/messaging/emulator/index.ts";

export interface RouteCall {
  readonly name: string;
  /** As the document writes it. */
  readonly route: string;
  /** Stands for the path's parameter. */
  readonly numberId?: string;
  /** A bearer token: a fresh one for "main", or a text as it is; absent for none. */
  readonly token?: string;
  readonly json?: unknown;
  readonly form?: (emulator: Emulator) => Record<string, string>;
  readonly headers?: Readonly<Record<string, string>> | ((emulator: Emulator) => Record<string, string>);
  /** The answer's. */
  readonly status: number;
  readonly before?: (emulator: Emulator) => void;
}

export interface Scene {
  readonly name: string;
  readonly options: EmulatorOptions;
  /** Whether the requests obey the document; in a scene where they do not, each must break it. */
  readonly fits: boolean;
  readonly calls: readonly RouteCall[];
}

const TOKEN = "POST /api/auth/token";
const WHOAMI = "GET /api/core/whoami";
const WEBHOOKS = "GET /api/core/webhooks";
const INBOUND = "PATCH /api/core/webhooks/inbound";
const DELIVERY = "PATCH /api/core/webhooks/delivery";
const NUMBERS = "GET /api/core/numbers";
const SEARCH = "POST /api/core/numbers/search";
const UPDATE = "PATCH /api/core/numbers/{numberId}";
const SEND = "POST /api/core/messages/send";

const FULL = "num_000001";
const NO_CAMPAIGN = "num_000002";
const SMS_OFF = "num_000003";
const INACTIVE = "num_000005";
const FOREIGN = "num_000006";

const sms = { sendFrom: FULL, to: ["+14155550123"], messageType: "SMS", text: "hello", externalReference: "order-1" };
const media = [{ storageKey: "a.png", mimeType: "image/png", byteLength: 10, fileName: "a.png" }];
const webhook = { endpointUrl: "http://127.0.0.1:9/webhooks", enabled: true, signingEnabled: true };
const key = (value: string) => ({ "idempotency-key": value });

/** A call of the main client. */
const byMain = (name: string, route: string, status: number, fields: Partial<RouteCall> = {}): RouteCall => ({
  ...{ name, route, status, token: "main" },
  ...fields,
});
const searchWith = (name: string, status: number, json: object) => byMain(name, SEARCH, status, { json });
const updateOf = (name: string, status: number, numberId: string, json: object = {}) =>
  byMain(name, UPDATE, status, { numberId, json });
const sendWith = (name: string, status: number, fields: object, idempotencyKey = name) =>
  byMain(name, SEND, status, { headers: key(idempotencyKey), json: { ...sms, ...fields } });

/** Requests that each core route takes. */
const PLAIN: readonly RouteCall[] = [
  byMain("whoami", WHOAMI, 200),
  byMain("webhooks", WEBHOOKS, 200),
  byMain("inbound webhook", INBOUND, 200, { json: webhook }),
  byMain("delivery webhook", DELIVERY, 200, { json: { ...webhook, secret: "a secret of our own" } }),
  byMain("numbers", NUMBERS, 200),
  searchWith("search", 200, { state: "WA", city: "Seattle" }),
  updateOf("update", 200, FULL, { webhookInboundOverride: "http://127.0.0.1:9/" }),
  sendWith("plain", 202, {}),
];

const GRANT = { grant_type: "client_credentials" };
type Pair = Readonly<Record<"clientId" | "clientSecret", string>>;
const credentials = ({ clientId, clientSecret }: Pair) => ({
  ...{ ...GRANT, client_id: clientId, client_secret: clientSecret },
});
const basic = ({ clientId, clientSecret }: Pair) => ({ authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}` });
const WRONG = credentials({ clientId: "client_main", clientSecret: "wrong" });

const TOKENS: readonly RouteCall[] = [
  { name: "token by form", route: TOKEN, form: credentials, status: 200 },
  { name: "token by Basic", route: TOKEN, form: () => GRANT, headers: basic, status: 200 },
  { name: "token without credentials", route: TOKEN, json: GRANT, status: 400 },
  { name: "token with a wrong secret", route: TOKEN, json: WRONG, status: 401 },
  {
    name: "an inactive client's",
    route: TOKEN,
    form: (given) => credentials(given.fixtures.clients.inactive),
    status: 401,
  },
];

const REFUSED: readonly RouteCall[] = [
  byMain("inbound target without http", INBOUND, 400, { json: { ...webhook, endpointUrl: "ftp://a/" } }),
  byMain("delivery target without http", DELIVERY, 400, { json: { ...webhook, endpointUrl: "ftp://a/" } }),
  searchWith("search that fails upstream", 502, { zipCode: "00502" }),
  updateOf("update of an inactive number", 400, INACTIVE),
  updateOf("update of another's number", 403, FOREIGN),
  updateOf("update of no number", 404, "num_none"),
  sendWith("send from a number without campaign", 400, { sendFrom: NO_CAMPAIGN }),
  sendWith("send from a number without SMS", 400, { sendFrom: SMS_OFF }),
  sendWith("send from another's number", 403, { sendFrom: FOREIGN }),
  sendWith("send from an E.164 number", 404, { sendFrom: "+12065550101" }),
  sendWith("send with another payload", 409, { text: "other" }, "plain"),
];

const FAILING: readonly RouteCall[] = [...PLAIN, ...TOKENS.slice(0, 1)].map((call) => ({
  ...call,
  name: `${call.name}, failing`,
  status: 500,
  before: ({ control }) =>
    void control.faults.add({ match: { route: call.route }, action: { type: "status", status: 500 }, times: 1 }),
}));

const fitting: Scene = {
  name: "requests that fit",
  options: {},
  fits: true,
  calls: [
    ...TOKENS,
    ...PLAIN,
    byMain("numbers with overrides", NUMBERS, 200),
    byMain("whoami with overrides", WHOAMI, 200),
    byMain("webhooks that are set", WEBHOOKS, 200),
    searchWith("search of all", 200, {}),
    updateOf("update to null", 200, FULL, { webhookInboundOverride: null }),
    sendWith("send again", 202, {}, "plain"),
    sendWith("send to some that are none", 202, { to: ["+14155550123", "555-0100", "<b>"] }),
    sendWith("send to none that is one", 202, { to: ["555-0100"] }),
    sendWith("send with media", 202, { messageType: "MMS", media }),
    ...PLAIN.map((call) => ({ ...call, name: `${call.name} with an unknown token`, token: "unknown", status: 401 })),
    ...REFUSED,
    ...FAILING,
  ],
};

/** What the document forbids as well as the emulator. */
const breaking: Scene = {
  name: "requests that do not fit",
  options: {},
  fits: false,
  calls: [
    ...PLAIN.map(({ token, ...call }) => ({ ...call, name: `${call.name} without a token`, status: 401 })),
    { name: "token without a body", route: TOKEN, status: 400 },
    { name: "another grant", route: TOKEN, json: { ...WRONG, grant_type: "password" }, status: 400 },
    byMain("webhook without signingEnabled", INBOUND, 400, { json: { enabled: true } }),
    byMain("webhook with a wrong type", DELIVERY, 400, { json: { signingEnabled: "yes" } }),
    byMain("webhook with an empty secret", DELIVERY, 400, { json: { ...webhook, secret: "" } }),
    searchWith("search by nxx alone", 400, { nxx: "555" }),
    searchWith("search by city alone", 400, { city: "Seattle" }),
    searchWith("search by rate center", 400, { rateCenter: "A", state: "WA" }),
    searchWith("search with a number", 400, { npa: 206 }),
    updateOf("update with null", 400, FULL, { smsEnabled: null }),
    updateOf("update with no URL", 400, FULL, { webhookInboundOverride: "a b" }),
    byMain("send without a key", SEND, 400, { json: sms }),
    sendWith("SMS with media", 400, { media }),
    sendWith("MMS without media", 400, { messageType: "MMS" }),
    sendWith("MMS with no item", 400, { messageType: "MMS", media: [] }),
    sendWith("media without a length", 400, { messageType: "MMS", media: [{ storageKey: "a", mimeType: "b" }] }),
    sendWith("send to nobody", 400, { to: [] }),
    sendWith("send to one text", 400, { to: "+14155550123" }),
    sendWith("send of another type", 400, { messageType: "sms" }),
    sendWith("send without a reference", 400, { externalReference: undefined }),
  ],
};

/** Other readings of what the specification does not show: the document holds for them too. */
const otherReadings: Scene = {
  name: "other readings",
  options: {
    unspecified: {
      "webhooks.routes": "404",
      "capabilities.enforce": true,
      "token.wwwAuthenticate": true,
      absentNullables: "omit",
      updateReturnsNull: true,
      allRejected: 400,
    },
  },
  fits: true,
  calls: [
    ...PLAIN.map((call) => ({ ...call, status: call.route.includes("webhooks") ? 404 : call.status })),
    ...TOKENS.filter(({ status }) => status === 401),
    sendWith("send to none that is one", 400, { to: ["555-0100"] }),
    ...PLAIN.filter(({ route }) => route.includes("numbers")).map((call) => ({
      ...call,
      name: `${call.name} without the capability`,
      status: 403,
      before: ({ control }: Emulator) => void control.updateClient("ac_main", { capabilities: [] }),
    })),
  ],
};

const shownFields: Scene = {
  name: "webhooks with all that they can show",
  options: {
    unspecified: { absentTimestamps: "null", "webhooks.exposeEndpointUrl": true, secretGeneration: "always" },
    deliveryUrl: "http://127.0.0.1:9/webhooks",
  },
  fits: true,
  calls: PLAIN.filter(({ route }) => route.includes("webhooks")).flatMap((call) => [
    call,
    { ...call, name: `${call.name} again` },
  ]),
};

export const SCENES: readonly Scene[] = [fitting, breaking, otherReadings, shownFields];
