/** Marked values that nobody may be told, in all their spellings; all that a client tells; and services that repeat what they were sent. */
import { inspect } from "node:util";
import type { Logger } from "../../../src/internal/logger.ts";
import { type Client, type ClientOptions, createClient } from "../../../src/messaging/client/index.ts";
import { config, leastAnswers, number } from "./operations.ts";
import { TOKEN_PATH, tokenBody } from "./support.ts";

/** What must never be told. The secrets have characters that each encoding writes in its own way. */
export const MARKS = {
  clientSecret: 'marked client+"secret"/ü',
  token: "marked.token-with_many~characters",
  number: "+14155550177",
  invalidNumber: "+1 (415) 555-0188",
  text: 'a marked "text" of ours 😀',
  webhookSecret: "marked webhook+secret/é",
  generatedSecret: "marked-generated-secret",
} as const;

const CLIENT_ID = "client:1";

/** All of them at once, as a service writes them that repeats what it got. */
export const ECHO = [
  ...Object.values(MARKS),
  `Bearer ${MARKS.token}`,
  `Basic ${basicOf(CLIENT_ID, MARKS.clientSecret)}`,
  ...Object.values(MARKS).map(formEncoded),
].join(" ");

const NEEDLES: readonly (readonly [name: string, spelling: string])[] = [
  ...Object.entries(MARKS).flatMap(([name, value]) =>
    spellingsOf(value).map((spelling): [string, string] => [name, spelling]),
  ),
  ["Basic credentials", basicOf(CLIENT_ID, MARKS.clientSecret)],
  ["number", MARKS.number.slice(1)],
];

/** The names of the marks in a text. */
export function marksIn(text: string): string[] {
  return [...new Set(NEEDLES.filter(([, spelling]) => text.includes(spelling)).map(([name]) => name))];
}

function spellingsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const base64 = Buffer.from(value).toString("base64");
  return [value, json, JSON.stringify(json).slice(1, -1), formEncoded(value), encodeURIComponent(value), base64];
}

function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

function basicOf(id: string, secret: string): string {
  return Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString("base64");
}

/** Every way in which a value is written into a log by people who do not think of it. */
export function shown(value: unknown): string {
  const stack = value instanceof Error ? `${value.stack} ${value.message} ${JSON.stringify({ ...value })}` : "";
  const whole = { depth: null, showHidden: false, maxArrayLength: null, maxStringLength: null } as const;
  return `${inspect(value, whole)} ${JSON.stringify(value)} ${String(value)} ${stack}`;
}

/** What a client told, and to whom. */
export class Told {
  readonly #texts: string[] = [];
  /** Per kind of telling, so that a test can see that there was something to look at. */
  readonly counts = new Map<string, number>();

  add(kind: string, ...values: unknown[]): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    for (const value of values) this.#texts.push(`${kind}: ${shown(value)}`);
  }

  /** Each telling that holds a mark, with the marks' names. */
  leaks(): string[] {
    return this.#texts.flatMap((text) => {
      const names = marksIn(text);
      return names.length === 0 ? [] : [`${names.join(", ")} in ${text.slice(0, 1_000)}`];
    });
  }

  logger(): Logger {
    const add = (level: string) => (fields: object, message: string) => this.add("line", { level, fields, message });
    return { debug: add("debug"), info: add("info"), warn: add("warn"), error: add("error") };
  }
}

/** A client in front of `fetch`, whose every word is kept in `told`. */
export function talkativeClient(fetch: typeof globalThis.fetch, told: Told, options: Partial<ClientOptions> = {}) {
  const client = createClient({
    ...{ baseUrl: "http://127.0.0.1:9", clientId: CLIENT_ID, clientSecret: MARKS.clientSecret },
    ...{ backoff: { baseMs: 0 }, maxRetries: 1, logger: told.logger() },
    onRequest: (notice) => told.add("notice", notice),
    onResponse: (notice) => told.add("notice", notice),
    onRetry: (notice) => told.add("notice", notice),
    fetch,
    ...options,
  });
  told.add("client", client, client.messages, client.webhooks, client.numbers);
  return client;
}

/** Every method, with marks wherever a user puts a secret, a number or a text. */
export function callsOf(client: Client, signal?: AbortSignal): readonly (() => Promise<unknown>)[] {
  const options = signal === undefined ? {} : { signal };
  const { number, invalidNumber, text, webhookSecret } = MARKS;
  const common = { sendFrom: "num_1", to: [number, invalidNumber], text, externalReference: "order-1" };
  const media = [{ storageKey: "a.png", mimeType: "image/png", byteLength: 10, fileName: text }] as const;
  return [
    () => client.whoami(options),
    () => client.webhooks.get(options),
    () => client.webhooks.update("delivery", { signingEnabled: true, secret: webhookSecret }, options),
    () => client.webhooks.update("inbound", { signingEnabled: true }, options),
    () => client.numbers.list(options),
    () => client.numbers.get(number, options),
    () => client.numbers.search({ state: text }, options),
    () => client.numbers.update(number, { smsEnabled: true }, options),
    () => client.messages.send({ ...common, messageType: "SMS" }, options),
    () => client.messages.send({ ...common, messageType: "MMS", media }, options),
    () => client.request("PUT", `/api/core/x/${number}/${encodeURIComponent(text)}`, { ...options, body: common }),
  ];
}

/** Makes every call; the errors go to `told`, the results are given back. */
export async function playAll(client: Client, told: Told, signal?: AbortSignal): Promise<unknown[]> {
  const results: unknown[] = [];
  for (const call of callsOf(client, signal)) {
    try {
      results.push(await call());
    } catch (error) {
      told.add("error", error);
      told.add((error as Error).name, []);
    }
  }
  return results;
}

/** A `fetch` that issues the marked token, and answers everything else as `answer` says. */
export function serviceThat(answer: (path: string, init: RequestInit) => Response | Promise<Response>): typeof fetch {
  return async (input, init = {}) => {
    const { pathname } = new URL(String(input));
    return pathname === TOKEN_PATH ? tokenAnswer() : answer(pathname, init);
  };
}

export function tokenAnswer(): Response {
  return Response.json(tokenBody(MARKS.token));
}

const LEAST = leastAnswers("One");

/** What a service answers that is as specified. */
export function success(path: string, { method }: RequestInit): Response {
  if (path.endsWith("/whoami")) return Response.json(LEAST.whoami);
  if (path.endsWith("/webhooks")) return Response.json(LEAST["webhooks.get"]);
  if (path.includes("/webhooks/")) return Response.json({ ...config, generatedSecret: MARKS.generatedSecret });
  if (path.endsWith("/search")) return Response.json(LEAST["numbers.search"]);
  if (path.endsWith("/send")) {
    const error = { code: "INVALID_RECIPIENT", message: ECHO, details: {} };
    const results = [{ to: MARKS.number, messageId: "msg_1", status: "QUEUED" }];
    return Response.json({ results, errors: [{ to: MARKS.invalidNumber, error }] }, { status: 202 });
  }
  const marked = { ...number, numberId: MARKS.number, e164: MARKS.number };
  return Response.json(method === "PATCH" ? { number: marked } : { numbers: [marked] });
}
