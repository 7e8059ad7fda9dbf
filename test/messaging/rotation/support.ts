/** What the rotation's tests stand on: an emulator, a client and a secret store on one clock. */
import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import { type Client, type ClientOptions, createClient } from "../../../src/messaging/client/index.ts";
import type { Emulator, EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import type { WebhookRecord } from "../../../src/messaging/emulator/state/records.ts";
import type { RotateSecretOptions, SecretStore } from "../../../src/messaging/rotation/index.ts";
import type { ReceiverSighting } from "../../../src/sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../../src/sources/messaging/webhook-kind.ts";
import { createFakeClock, type FakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { collected, type Line } from "../client/support.ts";
import { start } from "../emulator/support.ts";

export const FIRST_SECRET = "the-first-secret-of-at-least-32-bytes";
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export interface Setting {
  readonly clock: FakeClock;
  readonly emulator: Emulator;
  readonly client: Client;
  readonly secrets: SecretStore;
  /** What the receivers' heartbeats say; none at first. */
  sightings: readonly ReceiverSighting[] | null;
  readonly lines: Line[];
  /** For `rotateSecret`. */
  readonly options: RotateSecretOptions;
}

export interface SettingOptions {
  readonly emulator?: EmulatorOptions;
  readonly client?: Partial<ClientOptions>;
  /** Service and store have no secret at first. Default: both have `FIRST_SECRET`. */
  readonly empty?: boolean;
}

/** An hour after its first secret. The emulator's time is the clock's; the client's own waits are 0 ms. */
export async function startSetting({ emulator: settings = {}, client: own = {}, empty }: SettingOptions = {}) {
  const clock = createFakeClock();
  const emulator = await start({ clock: "real", systemClock: clock, ...settings });
  const client = createClient({
    baseUrl: emulator.url,
    clientId: emulator.clientId,
    clientSecret: emulator.clientSecret,
    fetch: (input, init) => emulator.handle(new Request(input, init)),
    backoff: { baseMs: 0 },
    ...own,
  });
  const secrets = memorySecrets({ receivers: async () => setting.sightings as readonly ReceiverSighting[] });
  const { lines, logger } = collected();
  const options = { client, kind: "delivery", secrets, clock, logger } as const;
  const setting: Setting = { clock, emulator, client, secrets, sightings: [], lines, options };
  if (empty !== true) {
    await client.webhooks.update("delivery", { signingEnabled: true, secret: FIRST_SECRET });
    await secrets.write(
      "delivery",
      { current: await serviceSecret(setting), previous: [], next: null, rotatedAt: null },
      0,
    );
  }
  await clock.advance(HOUR_MS);
  return setting;
}

/** What the service itself has. */
export function serviceState({ emulator }: Pick<Setting, "emulator">, kind: WebhookKind = "delivery") {
  const configs = Object.values(emulator.control.exportState().tables.webhooks ?? {}) as WebhookRecord[];
  const config = configs.find((each) => each.apiClientId === "ac_main" && each.kind === kind);
  if (config === undefined) throw new Error(`the service has no ${kind} webhook`);
  return config;
}

export function serviceSecret(setting: Pick<Setting, "emulator">, kind: WebhookKind = "delivery"): string | null {
  return serviceState(setting, kind).currentSecret;
}

/** Moves time on until the work has ended. */
export async function whileTimePasses<T>(clock: FakeClock, work: Promise<T>, stepMs = 100): Promise<T> {
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  work.then(done, done);
  while (!isDone) {
    await clock.advance(stepMs);
    await setImmediate();
  }
  return work;
}

/** Gives the other kind as many secrets as there may be besides two of this one; the first of them ends then, each later one an hour later. */
export async function fillInbound(secrets: SecretStore, end: number, current = "an-inbound-secret"): Promise<void> {
  const previous = Array.from({ length: 6 }, (_, index) => ({
    secret: `a-replaced-inbound-secret-${index}`,
    validUntil: end + index * HOUR_MS,
  }));
  await secrets.write("inbound", { current, previous, next: null, rotatedAt: null }, 0);
}

/** A receiver's heartbeat. */
export function sightingOf(fields: Partial<ReceiverSighting>): ReceiverSighting {
  return { id: "a", host: "web-1", pid: 101, seenAt: 0, keyringVersion: "none", counters: {}, ...fields };
}

export { failureOf } from "../../support/failure-of.ts";

/** The options, with a client to whose answers something is added. */
export function withConfig({ options }: Pick<Setting, "options">, method: "get" | "update", fields: object) {
  const { webhooks } = options.client;
  const changed: typeof webhooks =
    method === "update"
      ? { ...webhooks, update: async (...args) => ({ ...(await webhooks.update(...args)), ...fields }) }
      : {
          ...webhooks,
          async get() {
            const { defaults, ...rest } = await webhooks.get();
            return { ...rest, defaults: { ...defaults, delivery: { ...defaults.delivery, ...fields } } };
          },
        };
  return { ...options, client: { webhooks: changed } };
}

/** The options, with a client whose answer to the update shows something, and each look after it. */
export function withOutcome({ options }: Pick<Setting, "options">, fields: object) {
  const changed = withConfig({ options }, "update", fields);
  const shown = withConfig({ options }, "get", fields);
  let isUpdated = false;
  const webhooks: typeof options.client.webhooks = {
    get: () => (isUpdated ? shown : options).client.webhooks.get(),
    update(...args) {
      isUpdated = true;
      return changed.client.webhooks.update(...args);
    },
  };
  return { ...options, client: { webhooks } };
}

/** Service and store have one current secret, and no rotation is under way. */
export async function expectAgreement(setting: Setting): Promise<void> {
  const stored = await setting.secrets.read("delivery");
  expect(stored?.current).toBe(serviceSecret(setting));
  expect(stored?.next).toBeNull();
}
