/** No webhook secret in anything that a rotation tells: its result, its errors, its log, and the client's. */
import { describe, expect, it } from "vitest";
import { createClient } from "../../../src/messaging/client/index.ts";
import type { EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { rotateSecret, rotationStatus } from "../../../src/messaging/rotation/index.ts";
import {
  FIRST_SECRET,
  type Setting,
  serviceState,
  sightingOf,
  startSetting,
  whileTimePasses,
  withOutcome,
} from "../rotation/support.ts";
import { shown } from "./leaks-support.ts";

interface Way {
  readonly how: string;
  /** The code of its error; null for success. */
  readonly ends: string | null;
  readonly emulator?: EmulatorOptions;
  /** What the update is answered with, in the service's place; a function that throws stands for a broken connection. */
  readonly answer?: (body: string) => Response;
  before?(setting: Setting): Promise<unknown> | unknown;
  options?(setting: Setting): Setting["options"];
}

const echo = (body: string) => JSON.stringify({ error: { code: "SERVER_ERROR", message: body, details: { body } } });
const always: EmulatorOptions = { unspecified: { secretGeneration: "always" } };

const WAYS: readonly Way[] = [
  { how: "succeeds", ends: null },
  { how: "gets a secret of the service's own", ends: null, emulator: always },
  { how: "is begun twice", ends: "rotation_refused", before: ({ options }) => rotateSecret(options) },
  {
    how: "waits for a receiver in vain",
    ends: "receivers_not_ready",
    options({ options, secrets, clock }) {
      const receivers = async () => [sightingOf({ seenAt: clock.now() })];
      return { ...options, waitMs: 0, secrets: { ...secrets, receivers } };
    },
  },
  {
    how: "is answered by a service that has not rotated",
    ends: "not_rotated",
    options: (setting) => withOutcome(setting, { hasCurrentSecret: false }),
  },
  {
    how: "is refused with its body",
    ends: "SERVER_ERROR",
    answer: (body) => new Response(echo(body), { status: 500 }),
  },
  { how: "gets a page with its body", ends: "api_error", answer: (body) => new Response(body, { status: 502 }) },
  { how: "is answered with its body alone", ends: "not_rotated", answer: (body) => new Response(body) },
  {
    how: "breaks, in words that quote its body",
    ends: "connection_failed",
    answer(body) {
      throw Object.assign(new Error(`cannot send ${body}`), { body });
    },
  },
];

describe("rotateSecret()", () => {
  it.each(WAYS)("tells no secret when it $how", async ({ ends, emulator, answer, before, options }) => {
    const told: string[] = [];
    const keep = (fields: object, message: string) => void told.push(shown({ fields, message }));
    const logger = { debug: keep, info: keep, warn: keep, error: keep };
    const started = await startSetting(emulator === undefined ? {} : { emulator });
    const { emulator: service } = started;
    const client = createClient({
      ...{ baseUrl: service.url, clientId: service.clientId, clientSecret: service.clientSecret },
      ...{ backoff: { baseMs: 0 }, logger },
      fetch: async (input, init = {}) =>
        answer !== undefined && init.method === "PATCH"
          ? answer(String(init.body))
          : service.handle(new Request(input, init)),
    });
    const setting: Setting = { ...started, options: { ...started.options, client, logger } };
    await before?.(setting);
    const rotating = rotateSecret(options?.(setting) ?? setting.options);
    const ended = await whileTimePasses(setting.clock, rotating).then(
      (result) => ({ code: null, value: result }),
      (error: { code: string }) => ({ code: error.code, value: error }),
    );
    expect(ended.code).toBe(ends);
    const status = await rotationStatus({ kind: "delivery", secrets: setting.secrets, clock: setting.clock });
    const secrets = await secretsOf(setting);
    expect(secrets.length).toBeGreaterThan(1);
    for (const text of [...told, shown(ended.value), shown(status)]) {
      expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
    }
  });
});

/** All that the store and the service have, now or before. */
async function secretsOf(setting: Setting): Promise<string[]> {
  const stored = await setting.secrets.read("delivery");
  const { currentSecret, previousSecret } = serviceState(setting);
  const slots = [stored?.current, stored?.next?.secret, ...(stored?.previous.map(({ secret }) => secret) ?? [])];
  const all = [FIRST_SECRET, currentSecret, previousSecret, ...slots];
  return [...new Set(all.filter((secret): secret is string => typeof secret === "string"))];
}
