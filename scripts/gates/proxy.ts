/** The gate of what the emulator really answers: prism stands between a client run and it, and holds each call against docs/openapi.json. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createEmulator, type Emulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { Gate } from "./gate.ts";
import { DOCUMENT } from "./openapi.ts";
import { prismProgram, refusalIn, startPrism, violationsIn } from "./prism.ts";
import { playClient } from "./proxy-client.ts";
import { type ProxyCall, SCENES, type Scene } from "./proxy-scenes.ts";

export const proxy: Gate = {
  name: "api proxy",
  async run({ root }) {
    const program = await prismProgram(root);
    const runs = await Promise.all(SCENES.map((scene) => play(root, program, scene)));
    const ofClient = await playClient(root, program);
    const seen = new Set(runs.flatMap(({ seen }) => seen));
    const promised = answersOf(await readFile(join(root, DOCUMENT), "utf8"));
    const unseen = promised
      .filter((answer) => !seen.has(answer))
      .map((answer) => `no call was answered with ${answer}`);
    return [
      ...runs.map(({ name, count, problems }) => ({ name: `api proxy: ${name}`, count, unit: "calls", problems })),
      { name: "api proxy: our own client", ...ofClient, unit: "requests" },
      { name: "api proxy: answers of the document", count: promised.length, unit: "answers", problems: unseen },
    ];
  },
};

/** Every answer that the document promises: `GET /api/core/whoami 200`. */
function answersOf(text: string): string[] {
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, { responses: object }>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.keys(responses).map((status) => `${method.toUpperCase()} ${path} ${status}`),
    ),
  );
}

interface Played {
  readonly name: string;
  readonly count: number;
  readonly problems: readonly string[];
  readonly seen: readonly string[];
}

async function play(root: string, program: string, scene: Scene): Promise<Played> {
  await using emulator = await createEmulator({ logger: silentLogger, ...scene.options });
  const prism = await startPrism(program, { root, upstream: emulator.url, strict: scene.fits });
  const problems: string[] = [];
  const seen: string[] = [];
  try {
    for (const call of scene.calls) {
      const found = await make(call, emulator, prism.url, scene.fits);
      if (found === null) seen.push(`${call.route} ${call.status}`);
      else problems.push(`${call.name}: ${found}`);
    }
  } finally {
    await prism.stop();
  }
  return { name: scene.name, count: scene.calls.length, problems, seen };
}

/** Makes a call through prism; what is wrong with it, or null. */
async function make(call: ProxyCall, emulator: Emulator, url: string, fits: boolean): Promise<string | null> {
  call.before?.(emulator);
  const [method = "", path = ""] = call.route.split(" ");
  const filled = path.replace(/\{\w+\}/, call.numberId ?? "");
  const { body, headers } = await written(call, emulator);
  const response = await fetch(`${url}${filled}`, { method, headers, body });
  const text = await response.text();
  const violations = violationsIn(response);
  const ofAnswer = violations.filter(({ location }) => location?.[0] !== "request");
  if (ofAnswer.length > 0) return `the answer violates the document: ${JSON.stringify(ofAnswer)}`;
  const refusal = refusalIn(response, text);
  if (refusal !== null) return refusal;
  if (response.status !== call.status) return `${response.status} instead of ${call.status}: ${text.slice(0, 500)}`;
  if (fits && violations.length > 0) return `the request violates the document: ${JSON.stringify(violations)}`;
  return !fits && violations.length === 0 ? "the document allows what the emulator refuses" : null;
}

async function written(
  { token, json, form, headers = {} }: ProxyCall,
  emulator: Emulator,
): Promise<{ body: string | URLSearchParams | null; headers: Record<string, string> }> {
  const bearer = typeof token === "string" ? token : token === undefined ? null : await tokenOf(emulator, token);
  return {
    body: form === undefined ? (json === undefined ? null : JSON.stringify(json)) : new URLSearchParams(form(emulator)),
    headers: {
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...(typeof headers === "function" ? headers(emulator) : headers),
    },
  };
}

/** Straight from the emulator. */
async function tokenOf(
  emulator: Emulator,
  { client }: { client: keyof Emulator["fixtures"]["clients"] },
): Promise<string> {
  const { clientId, clientSecret } = emulator.fixtures.clients[client];
  const form = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  const response = await fetch(`${emulator.url}/api/auth/token`, { method: "POST", body: new URLSearchParams(form) });
  return ((await response.json()) as { access_token: string }).access_token;
}
