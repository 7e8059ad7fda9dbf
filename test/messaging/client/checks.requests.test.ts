/** What is refused before any request: by the service's rules, and always. No issue shows a value. */
import { describe, expect, it } from "vitest";
import {
  numberUpdateIssues,
  searchIssues,
  sendIssues,
  webhookUpdateIssues,
} from "../../../src/messaging/client/checks.ts";
import { type Client, InvalidArgumentError } from "../../../src/messaging/client/index.ts";
import { MEDIUM, MMS, RECIPIENT, SMS } from "./operations.ts";
import { failureOf, startClient } from "./support.ts";

/** What is tried, the fields that differ from a right request, and the issues. */
type Row = [what: string, fields: object, ...issues: string[]];

/** The same issues for each of these values. */
function each(what: string, fields: readonly string[], values: readonly unknown[], ...issues: string[]): Row[] {
  return values.map((value) => [what, Object.fromEntries(fields.map((field) => [field, value])), ...issues]);
}

/** What only a request that is an object can be. */
const NO_OBJECTS = [null, "SMS", [SMS], 7];

describe("sendIssues()", () => {
  const sender = "sendFrom: must be a numberId as numbers.list() shows it, not the phone number";
  const recipients = "to: must be a list of at least one phone number";
  const e164 = "to: holds no phone number in E.164 form, a plus sign and 2 to 15 digits without spaces";
  const media = "media: must be a list of at least one medium for MMS";
  const reference = "externalReference: must be a text that is not empty";
  const wrong = ["4155550123", "+04155550123", "+1", "+1415555012345678", " +14155550123", "+1 415 555 0123", ""];

  it.each<Row>([
    ["an SMS", {}],
    ["an MMS", { ...MMS, media: [{ ...MEDIUM, sourceUrl: "https://a.example", fileName: "a.png" }] }],
    ["no text and no media (SND-26)", { text: undefined, media: undefined }],
    ["one wrong recipient, which the service rejects as data (SND-7, CLI-9)", { to: ["4155550123", RECIPIENT, ""] }],
    ...each("the shortest and the longest number (SND-25)", ["to"], [["+14"], ["+123456789012345"]]),
    [
      "a missing reference (SND-14)",
      { externalReference: undefined },
      reference.replace("must", "is missing; it must"),
    ],
    ...each("no reference (SND-14)", ["externalReference"], ["", null, 7], reference),
    ...each("a sender that is not a numberId (SND-3)", ["sendFrom"], [RECIPIENT, "", 7, null], sender),
    ...each("no list of recipients (SND-6)", ["to"], [undefined, null, RECIPIENT, [], {}], recipients),
    [
      "a recipient that is not a text (SND-6)",
      { to: [RECIPIENT, 7, null] },
      "to.1: must be a text",
      "to.2: must be a text",
    ],
    ["a hole, which is null in JSON (SND-6)", { to: Array(1).concat(RECIPIENT) }, "to.0: must be a text"],
    ...wrong.map((to): Row => ["not one that is E.164 (SND-25)", { to: [to, to] }, e164]),
    ...each("another messageType (SND-10)", ["messageType"], ["sms", "RCS", 1], 'messageType: must be "SMS" or "MMS"'),
    ...each("an SMS with media (SND-11)", ["media"], [[MEDIUM], [], null], "media: must be left out for SMS"),
    ...[undefined, null, [], {}, "x"].map((none): Row => ["no media (SND-12)", { ...MMS, media: none }, media]),
    [
      "media with missing and wrong fields (SND-13)",
      { ...MMS, media: [MEDIUM, null, { storageKey: 7, byteLength: 1.5, sourceUrl: null }] },
      "media.1: must be an object",
      "media.2.mimeType: is missing; it must be a text",
      "media.2.storageKey: must be a text",
      "media.2.byteLength: must be a whole number of bytes",
      "media.2.sourceUrl: must be a text",
    ],
    ...each("a text that is none (SND-26)", ["text"], [null, 7], "text: must be a text"),
    [
      "a misspelled field (GEN-9)",
      { externalRefrence: "x" },
      'externalRefrence: is not known here. Did you mean "externalReference"?',
    ],
    [
      "a misspelled field of a medium (GEN-9)",
      { ...MMS, media: [{ ...MEDIUM, filename: "a" }] },
      'media.0.filename: is not known here. Did you mean "fileName"?',
    ],
    [
      "an unknown field (GEN-9)",
      { priority: 1 },
      "priority: is not known here. Known: sendFrom, to, messageType, text, media, externalReference.",
    ],
  ])("%s: %j", (_, fields, ...issues) => {
    expect(sendIssues({ ...SMS, ...fields })).toEqual(issues);
  });

  it.each([undefined, ...NO_OBJECTS])("refuses what is not an object: %j", (request) => {
    expect(sendIssues(request)).toEqual(["request: must be an object"]);
  });

  it.each(["toString", "constructor", "__proto__"])("knows no field that every object has: %s", (name) => {
    const issues = sendIssues({ ...SMS, ...JSON.parse(`{"${name}":"x"}`) });
    expect(issues).toEqual([expect.stringMatching(/ is not known here\./)]);
  });

  it("never shows a value, nor a key that could be one", () => {
    const marked = "marked-4711";
    const issues = [
      ...sendIssues({ ...SMS, [RECIPIENT]: 1, [marked]: 1, sendFrom: RECIPIENT, to: [marked], messageType: marked }),
      ...sendIssues({ ...MMS, text: { marked }, media: [{ ...MEDIUM, byteLength: marked, mimeType: [marked] }] }),
    ];
    expect(issues.length).toBeGreaterThan(7);
    expect(issues.join()).not.toMatch(/marked|415555/);
    expect(issues.filter((issue) => issue.startsWith("(a key): is not known here. Known: "))).toHaveLength(2);
  });

  it("tells 20 problems at most", () => {
    const wrong = Array.from({ length: 5_000 }, () => 7);
    const fields = Object.fromEntries(wrong.map((_, i) => [`field${i}`, i]));
    for (const request of [{ to: wrong }, { ...MMS, media: wrong }, { ...fields, to: wrong }])
      expect(sendIssues({ ...SMS, ...request })).toHaveLength(20);
  });
});

describe("numberUpdateIssues()", () => {
  const overrides = ["webhookInboundOverride", "webhookDeliveryOverride"];
  const notUrl = overrides.map((name) => `${name}: must be an http or https URL, or null to remove it`);
  const notFlag = ["smsEnabled", "mmsEnabled"].map((name) => `${name}: must be true or false`);
  const spelling = 'campaignRegId: requests write "campaignregId", with a small r';

  it.each<Row>([
    ["nothing", {}],
    ["all", { campaignregId: "C1", smsEnabled: true, mmsEnabled: false, webhookInboundOverride: "HTTP://a.example" }],
    ...each("null, which clears (UPD-8)", ["campaignregId", ...overrides], [null]),
    ["the spelling of answers (UPD-7, CLI-8)", { campaignRegId: "C1" }, spelling],
    ["both spellings (UPD-7, CLI-8)", { campaignRegId: null, campaignregId: "C1" }, spelling],
    ["an absent one (UPD-7)", { campaignRegId: undefined }],
    ...["campaignregid", "CampaignRegId", "campaignId"].map((name): Row => {
      return [
        "another spelling (CLI-8)",
        { [name]: "C1" },
        `${name}: is not known here. Did you mean "campaignregId"?`,
      ];
    }),
    ["no text (UPD-4)", { campaignregId: 7 }, "campaignregId: must be a text, or null to clear it"],
    ...each("a flag that is none (UPD-9)", ["smsEnabled", "mmsEnabled"], [null, 1, "true"], ...notFlag),
    ...each("no URL (UPD-5, UPD-15)", overrides, ["", "a.example", "ftp://a.example", "https://", 7], ...notUrl),
    ...each("a script (UPD-15)", overrides, ["javascript:alert(1)"], ...notUrl),
  ])("%s: %j", (_, fields, ...issues) => {
    expect(numberUpdateIssues(fields)).toEqual(issues);
  });

  it.each([undefined, ...NO_OBJECTS])("refuses what is not an object: %j (UPD-4)", (update) => {
    expect(numberUpdateIssues(update)).toEqual(["update: must be an object"]);
  });
});

describe("searchIssues()", () => {
  const currently = "rateCenter: is currently refused by the service; validateRequests: false sends it all the same";

  it.each<Row>([
    ["nothing (SEA-1)", {}],
    ["filters (SEA-1)", { npa: "559", nxx: "555" }],
    ["more filters (SEA-1)", { city: "Fresno", state: "CA", zipCode: "93721" }],
    ["no texts (SEA-1)", { npa: 559, state: null }, "npa: must be a text", "state: must be a text"],
    ["nxx without npa (SEA-2, SEA-15)", { nxx: "555", npa: undefined }, "nxx: needs npa"],
    ["city without state (SEA-3, SEA-15)", { city: "Fresno" }, "city: needs state"],
    ["rateCenter (SEA-4, SEA-15)", { rateCenter: "FRESNO" }, "rateCenter: needs state", currently],
    ["rateCenter with state (SEA-5, SEA-15)", { rateCenter: "FRESNO", state: "CA" }, currently],
    ["a misspelled filter", { zipcode: "93721" }, 'zipcode: is not known here. Did you mean "zipCode"?'],
  ])("%s: %j", (_, fields, ...issues) => {
    expect(searchIssues(fields)).toEqual(issues);
  });

  it("takes nothing at all, and refuses what is not an object (SEA-1)", () => {
    expect(searchIssues(undefined)).toEqual([]);
    for (const search of NO_OBJECTS) expect(searchIssues(search)).toEqual(["search: must be an object"]);
  });
});

describe("webhookUpdateIssues()", () => {
  const url = "endpointUrl: must be an http or https URL, or null to remove it";
  const refused = "Receivers refuse it, so it is not sent; validateRequests: false sends it";
  const flag = "signingEnabled: must be true or false";

  it.each<Row>([
    ["all (WHK-9, WHK-10, WHK-11)", { endpointUrl: "https://a.example/in", enabled: true, secret: "s".repeat(32) }],
    ["no target (WHK-9)", { signingEnabled: false, endpointUrl: null }],
    ["no signingEnabled (WHK-8)", { signingEnabled: undefined }, flag.replace("must", "is missing; it must")],
    ["none of the two (WHK-8)", { signingEnabled: null }, flag],
    ...each("no URL (WHK-9, WHK-25)", ["endpointUrl"], ["", "a.example", "file:///etc/passwd", 7], url),
    ...each("no flag (WHK-10)", ["enabled"], [null, "yes"], "enabled: must be true or false"),
    [
      "a short secret (WHK-24)",
      { secret: "elevenbytes" },
      `secret: is 11 bytes long; a secret has at least 16. ${refused}`,
    ],
    ["blanks (WHK-24)", { secret: " ".repeat(20) }, `secret: holds nothing but white space. ${refused}`],
    ...each("no secret (WHK-11, WHK-24)", ["secret"], ["", null, 7], "secret: must be a text that is not empty"),
    [
      "an answer given back, whose fields the service does not take (GEN-9)",
      { eventClass: "INBOUND" },
      "eventClass: is not known here. Known: endpointUrl, enabled, signingEnabled, secret.",
    ],
  ])("%s: %j", (_, fields, ...issues) => {
    expect(webhookUpdateIssues({ signingEnabled: true, ...fields })).toEqual(issues);
  });

  it.each([undefined, ...NO_OBJECTS])("refuses what is not an object: %j", (update) => {
    expect(webhookUpdateIssues(update)).toEqual(["update: must be an object"]);
  });
});

/** As a caller in JavaScript has it. */
type Untyped<T> = {
  [Name in keyof T]: T[Name] extends (...given: never) => unknown
    ? (...given: unknown[]) => Promise<unknown>
    : Untyped<T[Name]>;
};

type Refused = [what: string, make: (client: Untyped<Client>) => Promise<unknown>, issue: string];

describe.each([true, false])("with validateRequests %s, the client refuses before any request", (validateRequests) => {
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  const cannotBeJson = "cannot be written as JSON";
  const missing = "is missing; it must be an object";
  const misspelled = 'options.idempotencykey: is not known here. Did you mean "idempotencyKey"?';
  const unnamed = "options.(a key): is not known here. Known: signal, timeoutMs, maxRetries, headers.";
  const numberId = "numberId: must be a numberId as numbers.list() shows it";
  const noOptions = "options: must be an object, such as { signal }";
  const longest = "options.timeoutMs: must be a whole number from 1 to 300000 ms";
  const retries = "options.maxRetries: must be a whole number from 0 to 10 retries";
  const slash = "path: must begin with one slash, and be encoded";
  const dots = "path: must have no . or .. in it";
  const method = "method: must be GET, POST, PUT, PATCH, DELETE, in capitals";

  const at = (path: string | undefined, issue: string): Refused => {
    return [`the path ${path}`, ({ request }) => request("GET", path), issue];
  };
  const numberCalls = (id: unknown): Refused[] => [
    [`an update of the number ${id} (UPD-16)`, ({ numbers }) => numbers.update(id, {}), numberId],
    [`the number ${id}`, ({ numbers }) => numbers.get(id), numberId],
  ];

  it.each<Refused>([
    ["no send (SND-3)", ({ messages }) => messages.send(undefined), `request: ${missing}`],
    ["no update of a number (UPD-4)", ({ numbers }) => numbers.update("num_1"), `update: ${missing}`],
    ["no update of a webhook (WHK-8)", ({ webhooks }) => webhooks.update("inbound"), `update: ${missing}`],
    ["a circle", ({ messages }) => messages.send(circle), `request: ${cannotBeJson}`],
    ["a bigint", ({ messages }) => messages.send({ n: 1n }), `request: ${cannotBeJson}`],
    ["a function", ({ messages }) => messages.send(() => {}), `request: ${cannotBeJson}`],
    ["a misspelled key", ({ messages }) => messages.send(SMS, { idempotencykey: "k" }), misspelled],
    [
      "a key where none is sent",
      ({ whoami }) => whoami({ idempotencyKey: "k" }),
      "options.idempotencyKey: is not known",
    ],
    ["a name that could be a value", ({ whoami }) => whoami({ [RECIPIENT]: 1 }), unnamed],
    ["a signal that is none", ({ whoami }) => whoami({ signal: {} }), "options.signal: must be an AbortSignal"],
    ["the index of map()", ({ numbers }) => numbers.get("num_1", 0), noOptions],
    ["no time at all", ({ numbers }) => numbers.list({ timeoutMs: 0 }), longest],
    ["time without end", ({ numbers }) => numbers.list({ timeoutMs: Number.POSITIVE_INFINITY }), longest],
    ["many retries", ({ numbers }) => numbers.list({ maxRetries: 11 }), retries],
    ["retries as a text", ({ numbers }) => numbers.list({ maxRetries: "1" }), retries],
    ...["", ".", "..", "\ud800", 7, null, undefined].flatMap(numberCalls),
    ...["api/core", "//example.com/x", "https://a.example", "/\\a.example"].map((path) => at(path, slash)),
    ...["/a b", "/a#b", "/ä", "", undefined].map((path) => at(path, slash)),
    ...["/a/../b", "/a/%2E%2e/b", "/a/."].map((path) => at(path, dots)),
    ["a method in small letters", ({ request }) => request("get", "/a"), method],
    ["a method that is none of these", ({ request }) => request("CONNECT", "/a"), method],
    ["a GET with a body", ({ request }) => request("GET", "/a", { body: {} }), "options.body: a GET has none"],
    ["an unknown option", ({ request }) => request("GET", "/a", { query: {} }), "options.query: is not known here."],
  ])("%s", async (_, make, issue) => {
    const { client, requests } = await startClient({ validateRequests });
    const error = await failureOf(make(client as unknown as Untyped<Client>), InvalidArgumentError);
    expect(error).toMatchObject({ attempts: 0, code: "invalid_argument", issues: [expect.stringContaining(issue)] });
    expect(requests).toEqual([]);
  });

  it.each(["", " ", "a b", "a\nb", "é", "k".repeat(256), 7, null, {}])(
    "the idempotency key %j (SND-1)",
    async (key) => {
      const { client, requests } = await startClient({ validateRequests });
      const options = { idempotencyKey: key } as never;
      for (const call of [client.messages.send(SMS, options), client.request("GET", "/a", options)]) {
        const { issues, idempotencyKey } = await failureOf(call, InvalidArgumentError);
        expect(issues).toEqual(["options.idempotencyKey: must be 1 to 255 visible ASCII characters"]);
        expect(idempotencyKey).toBeNull();
      }
      expect(requests).toEqual([]);
    },
  );

  it.each(["outbound", "Inbound", "../numbers", "", undefined, 7])("the webhook kind %j (DLV-1)", async (kind) => {
    const { client, requests } = await startClient({ validateRequests });
    const call = client.webhooks.update(kind as never, { signingEnabled: true });
    const { message } = await failureOf(call, InvalidArgumentError);
    expect(message).toBe('webhooks.update was not made: kind: must be "inbound" or "delivery".');
    expect(requests).toEqual([]);
  });

  const own = "is set by the client itself; leave it out";
  const text = "options.headers.x-a: must be a text of at most 8192";
  const object = "options.headers: must be an object";
  const name = "options.headers: a name is not the name of a header";
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`x-${i}`, "a"]));

  it.each<[headers: unknown, issue: string]>([
    ...["authorization", "Authorization", "IDEMPOTENCY-KEY", "content-type", "accept", "host", "content-length"].map(
      (header): [object, string] => [{ [header]: "marked" }, `options.headers.${header}: ${own}`],
    ),
    ...["connection", "transfer-encoding", "expect", "te", "upgrade"].map((header): [object, string] => [
      { [header]: "marked" },
      `options.headers.${header}: ${own}`,
    ]),
    ...["marked\r\nauthorization: b", 7, "grün", " a"].map((value): [object, string] => [{ "x-a": value }, text]),
    [{ "marked b": "a" }, name],
    [{ "": "a" }, name],
    [new Headers({ a: "b" }), object],
    [[["a", "b"]], object],
    ["a: b", object],
    [many, "options.headers: must hold at most 50"],
  ])("the headers %j", async (headers, issue) => {
    const { client, requests } = await startClient({ validateRequests });
    const error = await failureOf(client.whoami({ headers } as never), InvalidArgumentError);
    expect(error.issues).toEqual([expect.stringContaining(issue)]);
    expect(error.message).not.toContain("marked");
    expect(requests).toEqual([]);
  });
});

describe("an InvalidArgumentError", () => {
  it("ends in one full stop, also where it lists what is known (GEN-9)", async () => {
    const { client } = await startClient();
    const wrong = { ...SMS, priority: 1, externalReference: "" };
    const { message } = await failureOf(client.messages.send(wrong), InvalidArgumentError);
    expect(message).toBe(
      "messages.send was not made: externalReference: must be a text that is not empty; priority: is not known here. Known: sendFrom, to, messageType, text, media, externalReference.",
    );
    const { message: last } = await failureOf(client.numbers.search({ zip: "1", planet: "x" } as never), Error);
    expect(last).not.toMatch(/\.[.;]|\?\./);
    const { message: asked } = await failureOf(client.numbers.search({ zipcode: "1" } as never), Error);
    expect(asked).toBe('numbers.search was not made: zipcode: is not known here. Did you mean "zipCode"?');
  });
});
