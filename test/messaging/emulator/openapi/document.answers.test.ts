/** docs/openapi.json holds: each call and each answer of the emulator fits it, and every promised answer is given. */
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../../../src/internal/logger.ts";
import { type Client, createClient } from "../../../../src/messaging/client/index.ts";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { openApiDocument } from "../../../../src/messaging/emulator/openapi/document.ts";
import { type RouteCall, SCENES } from "../openapi-scenes.ts";
import { start, tokenOf } from "../support.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is JSON of many shapes
const document: any = JSON.parse(JSON.stringify(openApiDocument()));
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema(document, "openapi");

/** The part of the document that `steps` lead to, references followed, with its place. */
function part(...steps: readonly string[]) {
  let place = "#";
  let value = document;
  for (const step of steps) {
    place += `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    value = value?.[step];
    if (value?.$ref === undefined) continue;
    place = value.$ref;
    value = place
      .split("/")
      .slice(1)
      .reduce((inner, name) => inner[name], document);
  }
  return { place, value };
}

/** What of a JSON text does not fit the schema at `place`. */
function misfits(place: string, value: unknown): string[] {
  const validate = ajv.getSchema(`openapi${encodeURI(place)}`);
  if (validate === undefined) return [`there is no schema at ${place}`];
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** The path of the document that a call went to: `/api/core/numbers/{numberId}`. */
function templateOf(path: string): string {
  const patterns = Object.keys(document.paths).map((each) => ({ each, parts: each.split("/") }));
  const parts = path.split("/");
  const found = patterns.find(
    (pattern) =>
      pattern.parts.length === parts.length &&
      pattern.parts.every((name, index) => name.startsWith("{") || name === parts[index]),
  );
  return found?.each ?? path;
}

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly request: Request;
  readonly body: string;
  readonly response: Response;
  readonly text: string;
}

/** What of the request the document does not allow: its token, its headers, its body. */
function requestMisfits({ method, path, request, body }: Exchange): string[] {
  const { value: operation } = part("paths", path, method);
  const needsToken = operation.security === undefined && request.headers.get("authorization") === null;
  const missing = (operation.parameters ?? [])
    .filter(({ in: where, name, required }: Record<string, string>) => {
      return where === "header" && required && !request.headers.has(name ?? "");
    })
    .map(({ name }: Record<string, string>) => `header ${name} is missing`);
  const found = [...(needsToken ? ["there is no token"] : []), ...missing];
  if (operation.requestBody === undefined) return found;
  if (body === "") return operation.requestBody.required ? [...found, "there is no body"] : found;
  const type = request.headers.get("content-type")?.split(";")[0] ?? "";
  const { place, value: content } = part("paths", path, method, "requestBody", "content", type);
  if (content === undefined) return [...found, `a body of ${type} is not allowed`];
  const value = type === "application/json" ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
  return [...found, ...misfits(`${place}/schema`, value)];
}

/** What of the answer the document does not promise. */
function answerMisfits({ method, path, response, text }: Exchange): string[] {
  const { value: answer } = part("paths", path, method, "responses", `${response.status}`);
  if (answer === undefined) return [`${response.status} is not promised`];
  if (answer.content === undefined) return text === "" ? [] : ["a body is not promised"];
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  const { place, value: content } = part("paths", path, method, "responses", `${response.status}`, "content", type);
  return content === undefined ? [`a body of ${type} is not promised`] : misfits(`${place}/schema`, JSON.parse(text));
}

/** Makes a call without a socket, and keeps what was sent and answered. */
async function exchange(emulator: Emulator, url: string, init: RequestInit): Promise<Exchange> {
  const request = new Request(url, init);
  const body = await request.clone().text();
  const response = await emulator.handle(request);
  const text = await response.clone().text();
  const path = templateOf(new URL(url).pathname);
  return { method: request.method.toLowerCase(), path, request, body, response, text };
}

async function play(emulator: Emulator, call: RouteCall): Promise<Exchange> {
  call.before?.(emulator);
  const [method = "", path = ""] = call.route.split(" ");
  const { token, json, form, headers = {} } = call;
  const bearer = token === "main" ? await tokenOf(emulator) : (token ?? null);
  return exchange(emulator, `http://emulator.test${path.replace(/\{\w+\}/, call.numberId ?? "")}`, {
    method,
    body: form === undefined ? (json === undefined ? null : JSON.stringify(json)) : new URLSearchParams(form(emulator)),
    headers: {
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...(typeof headers === "function" ? headers(emulator) : headers),
    },
  });
}

const sms = { to: ["+14155550123"], messageType: "SMS", text: "hello", externalReference: "order-1" } as const;
const media = [{ storageKey: "a.png", mimeType: "image/png", byteLength: 10, fileName: "a.png" }] as const;
const target = { endpointUrl: "http://127.0.0.1:9/webhooks", enabled: true, signingEnabled: true };
const none = { endpointUrl: null, enabled: false, signingEnabled: false };

/** Each method of our client, with all that it can send. */
const CALLS: readonly ((client: Client, sendFrom: string) => Promise<unknown>)[] = [
  (client) => client.whoami(),
  (client) => client.webhooks.get(),
  (client) => client.webhooks.update("inbound", target),
  (client) => client.webhooks.update("delivery", { ...target, secret: "a secret of our own" }),
  (client) => client.webhooks.update("inbound", none),
  (client) => client.numbers.list(),
  (client, number) => client.numbers.get(number),
  (client) => client.numbers.search({ state: "WA", city: "Seattle" }),
  (client) => client.numbers.search(),
  (client, number) => client.numbers.update(number, { campaignregId: "C123", smsEnabled: true, mmsEnabled: true }),
  (client, number) =>
    client.numbers.update(number, { webhookInboundOverride: "http://127.0.0.1:9/", webhookDeliveryOverride: null }),
  (client, sendFrom) => client.messages.send({ ...sms, sendFrom }),
  (client, sendFrom) => client.messages.send({ ...sms, sendFrom, messageType: "MMS", media }),
];

const seen = new Set<string>();

describe.each(SCENES)("docs/openapi.json, $name", ({ options, fits, calls }) => {
  it("holds for each call and each answer (GEN-2, NUM-5, UPD-13, SEA-9, SND-21)", async () => {
    const emulator = await start(options);
    for (const call of calls) {
      const made = await play(emulator, call);
      expect({ name: call.name, status: made.response.status }).toEqual({ name: call.name, status: call.status });
      expect(answerMisfits(made), `the answer to: ${call.name}`).toEqual([]);
      if (fits) expect(requestMisfits(made), `the request: ${call.name}`).toEqual([]);
      else expect(requestMisfits(made), `the document allows: ${call.name}`).not.toEqual([]);
      seen.add(`${made.method} ${made.path} ${made.response.status}`);
    }
  });
});

describe("docs/openapi.json", () => {
  it("promises no answer that no scene shows", () => {
    const promised = Object.entries<Record<string, { responses: object }>>(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { responses }]) =>
        Object.keys(responses).map((status) => `${method} ${path} ${status}`),
      ),
    );
    expect(promised.length).toBeGreaterThan(30);
    expect(promised.filter((answer) => !seen.has(answer))).toEqual([]);
  });

  it("does not hold for an answer with a field too few, of another type or with another status", async () => {
    const emulator = await start();
    const whoami = { name: "whoami", route: "GET /api/core/whoami", token: "main", status: 200 } as const;
    const made = await play(emulator, whoami);
    const { data } = JSON.parse(made.text);
    const answers = [{ data: {} }, { data: { ...data, apiClient: 1 } }, {}].map((each) => JSON.stringify(each));
    expect(answerMisfits(made)).toEqual([]);
    for (const text of answers) expect(answerMisfits({ ...made, text })).not.toEqual([]);
    expect(answerMisfits({ ...made, response: new Response("{}", { status: 418 }) })).not.toEqual([]);
  });

  it.each(["body", "basic"] as const)("holds for what our own client sends and gets, by %s", async (authMethod) => {
    const emulator = await start();
    const problems: string[] = [];
    const { clientId, clientSecret } = emulator;
    let count = 0;
    const client = createClient({
      ...{ clientId, clientSecret, authMethod, baseUrl: "http://localhost", logger: silentLogger },
      validateResponses: "throw",
      async fetch(input, init) {
        const made = await exchange(emulator, `${input}`, init ?? {});
        count += 1;
        problems.push(...[...requestMisfits(made), ...answerMisfits(made)].map((each) => `${made.path}: ${each}`));
        return made.response;
      },
    });
    for (const make of CALLS) await make(client, emulator.fixtures.numbers.full);
    expect(problems).toEqual([]);
    expect(count).toBeGreaterThan(CALLS.length);
  });
});
