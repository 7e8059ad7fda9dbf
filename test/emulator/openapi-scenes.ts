/** Calls of every route, with each answer that docs/openapi.json promises. */
import type { Emulator, EmulatorOptions, Fixtures } from "../../src/emulator/index.ts";

export interface RouteCall {
  readonly name: string;
  /** As the document writes it. */
  readonly route: string;
  /** Stands for the path's parameter. */
  readonly numberId?: string;
  /** A bearer token: a fresh one of a client, or a text; absent for none. */
  readonly token?: string | { readonly client: keyof Fixtures["clients"] };
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

const main = { client: "main" } as const;

const TOKEN = "POST /api/auth/token";
const WHOAMI = "GET /api/core/whoami";
const WEBHOOKS = "GET /api/core/webhooks";
const INBOUND = "PATCH /api/core/webhooks/inbound";
const DELIVERY = "PATCH /api/core/webhooks/delivery";
const NUMBERS = "GET /api/core/numbers";
const SEARCH = "POST /api/core/numbers/search";
const UPDATE = "PATCH /api/core/numbers/{numberId}";
const SEND = "POST /api/core/messages/send";

const [FULL, NO_CAMPAIGN, SMS_OFF, INACTIVE, FOREIGN] = [
  "num_000001",
  "num_000002",
  "num_000003",
  "num_000005",
  "num_000006",
];

const sms = {
  sendFrom: FULL,
  to: ["+14155550123"],
  messageType: "SMS",
  text: "hello",
  externalReference: "order-1",
};
const media = [{ storageKey: "a.png", mimeType: "image/png", byteLength: 10, fileName: "a.png" }];
const webhook = { endpointUrl: "http://127.0.0.1:9/webhooks", enabled: true, signingEnabled: true };

const key = (value: string) => ({ "idempotency-key": value });
const sendWith = (name: string, status: number, fields: object, idempotencyKey = name): RouteCall => ({
  name,
  route: SEND,
  token: main,
  headers: key(idempotencyKey),
  json: { ...sms, ...fields },
  status,
});

/** Requests that each core route takes. */
const PLAIN: readonly RouteCall[] = [
  { name: "whoami", route: WHOAMI, status: 200 },
  { name: "webhooks", route: WEBHOOKS, status: 200 },
  { name: "inbound webhook", route: INBOUND, json: webhook, status: 200 },
  { name: "delivery webhook", route: DELIVERY, json: { ...webhook, secret: "a secret of our own" }, status: 200 },
  { name: "numbers", route: NUMBERS, status: 200 },
  { name: "search", route: SEARCH, json: { state: "WA", city: "Seattle" }, status: 200 },
  {
    name: "update",
    route: UPDATE,
    numberId: FULL,
    json: { webhookInboundOverride: "http://127.0.0.1:9/" },
    status: 200,
  },
  { name: "send", route: SEND, headers: key("plain"), json: sms, status: 202 },
];

const credentials = ({ clientId, clientSecret }: Emulator) => ({
  grant_type: "client_credentials",
  client_id: clientId,
  client_secret: clientSecret,
});

const TOKENS: readonly RouteCall[] = [
  { name: "token by form", route: TOKEN, form: credentials, status: 200 },
  {
    name: "token by Basic",
    route: TOKEN,
    form: () => ({ grant_type: "client_credentials" }),
    headers: ({ clientId, clientSecret }) => ({ authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}` }),
    status: 200,
  },
  { name: "token without credentials", route: TOKEN, json: { grant_type: "client_credentials" }, status: 400 },
  {
    name: "token with a wrong secret",
    route: TOKEN,
    json: { grant_type: "client_credentials", client_id: "client_main", client_secret: "wrong" },
    status: 401,
  },
  {
    name: "token of an inactive client",
    route: TOKEN,
    form: ({ fixtures: { clients } }) => ({
      grant_type: "client_credentials",
      client_id: clients.inactive.clientId,
      client_secret: clients.inactive.clientSecret,
    }),
    status: 401,
  },
];

const REFUSED: readonly RouteCall[] = [
  {
    name: "inbound target without http",
    route: INBOUND,
    token: main,
    json: { ...webhook, endpointUrl: "ftp://a/" },
    status: 400,
  },
  {
    name: "delivery target without http",
    route: DELIVERY,
    token: main,
    json: { ...webhook, endpointUrl: "ftp://a/" },
    status: 400,
  },
  { name: "search that fails upstream", route: SEARCH, token: main, json: { zipCode: "00502" }, status: 502 },
  { name: "update of an inactive number", route: UPDATE, numberId: INACTIVE, token: main, json: {}, status: 400 },
  { name: "update of another's number", route: UPDATE, numberId: FOREIGN, token: main, json: {}, status: 403 },
  { name: "update of no number", route: UPDATE, numberId: "num_none", token: main, json: {}, status: 404 },
  sendWith("send from a number without campaign", 400, { sendFrom: NO_CAMPAIGN }),
  sendWith("send from a number without SMS", 400, { sendFrom: SMS_OFF }),
  sendWith("send from another's number", 403, { sendFrom: FOREIGN }),
  sendWith("send from an E.164 number", 404, { sendFrom: "+12065550101" }),
  sendWith("send with another payload", 409, { text: "other" }, "plain"),
];

const BY_RULE: readonly RouteCall[] = [...PLAIN, { name: "token", route: TOKEN, form: credentials, status: 200 }].map(
  (call) => ({
    ...call,
    name: `${call.name}, failing`,
    ...(call.route === TOKEN ? {} : { token: main }),
    status: 500,
    before: (emulator) => {
      emulator.control.faults.add({ match: { route: call.route }, action: { type: "status", status: 500 }, times: 1 });
    },
  }),
);

const fitting: Scene = {
  name: "requests that fit",
  options: {},
  fits: true,
  calls: [
    ...TOKENS,
    ...PLAIN.map((call) => ({ ...call, token: main })),
    { name: "numbers with overrides", route: NUMBERS, token: main, status: 200 },
    { name: "whoami with overrides", route: WHOAMI, token: main, status: 200 },
    { name: "webhooks that are set", route: WEBHOOKS, token: main, status: 200 },
    { name: "search of all", route: SEARCH, token: main, json: {}, status: 200 },
    {
      name: "update to null",
      route: UPDATE,
      numberId: FULL,
      token: main,
      json: { webhookInboundOverride: null },
      status: 200,
    },
    sendWith("send again", 202, {}, "plain"),
    sendWith("send to some that are none", 202, { to: ["+14155550123", "555-0100", "<b>"] }),
    sendWith("send to none that is one", 202, { to: ["555-0100"] }),
    sendWith("send with media", 202, { messageType: "MMS", media }),
    ...PLAIN.map((call) => ({ ...call, name: `${call.name} with an unknown token`, token: "unknown", status: 401 })),
    ...REFUSED,
    ...BY_RULE,
  ],
};

/** What the document forbids as well as the emulator. */
const breaking: Scene = {
  name: "requests that do not fit",
  options: {},
  fits: false,
  calls: [
    ...PLAIN.map((call) => ({ ...call, name: `${call.name} without a token`, status: 401 })),
    { name: "token without a body", route: TOKEN, status: 400 },
    {
      name: "token for another grant",
      route: TOKEN,
      form: (given) => ({ ...credentials(given), grant_type: "password" }),
      status: 400,
    },
    { name: "webhook without signingEnabled", route: INBOUND, token: main, json: { enabled: true }, status: 400 },
    { name: "webhook with a wrong type", route: DELIVERY, token: main, json: { signingEnabled: "yes" }, status: 400 },
    {
      name: "webhook with an empty secret",
      route: DELIVERY,
      token: main,
      json: { ...webhook, secret: "" },
      status: 400,
    },
    { name: "search by nxx alone", route: SEARCH, token: main, json: { nxx: "555" }, status: 400 },
    { name: "search by city alone", route: SEARCH, token: main, json: { city: "Seattle" }, status: 400 },
    { name: "search by rate center", route: SEARCH, token: main, json: { rateCenter: "A", state: "WA" }, status: 400 },
    { name: "search with a number", route: SEARCH, token: main, json: { npa: 206 }, status: 400 },
    { name: "update with null", route: UPDATE, numberId: FULL, token: main, json: { smsEnabled: null }, status: 400 },
    {
      name: "update with no URL",
      route: UPDATE,
      numberId: FULL,
      token: main,
      json: { webhookInboundOverride: "a b" },
      status: 400,
    },
    { name: "send without a key", route: SEND, token: main, json: sms, status: 400 },
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
    ...PLAIN.map((call) => ({ ...call, token: main, status: call.route.includes("webhooks") ? 404 : call.status })),
    ...TOKENS.filter(({ status }) => status === 401),
    sendWith("send to none that is one", 400, { to: ["555-0100"] }),
    ...PLAIN.filter(({ route }) => route.includes("numbers")).map((call, index) => ({
      ...call,
      name: `${call.name} without the capability`,
      token: main,
      status: 403,
      ...(index === 0
        ? { before: ({ control }: Emulator) => void control.updateClient("ac_main", { capabilities: [] }) }
        : {}),
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
    { ...call, token: main },
    { ...call, name: `${call.name} again`, token: main },
  ]),
};

export const SCENES: readonly Scene[] = [fitting, breaking, otherReadings, shownFields];
