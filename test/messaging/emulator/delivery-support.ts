/** What the tests of deliveries share: an emulator whose webhooks are caught, and signatures made without our own code. */
import { createHmac } from "node:crypto";
import { expect } from "vitest";
import type { Delivery, Emulator, EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { type Called, type Catcher, type Caught, call, start, startCatcher, tokenOf } from "./support.ts";

export const SECRET = "current-secret-of-the-tests";
export const MINUTE = 60_000;

/** 2026-01-01T00:00:00Z, where a virtual clock begins. */
export const BEGIN = Date.UTC(2026, 0, 1);

export interface Stage {
  readonly emulator: Emulator;
  readonly catcher: Catcher;
}

/** Both kinds go to one catcher, signed with `SECRET` at the emulator's time. */
export async function stage(options: EmulatorOptions = {}): Promise<Stage> {
  const catcher = await startCatcher();
  const emulator = await start({
    inboundUrl: catcher.url,
    deliveryUrl: catcher.url,
    webhookSecret: SECRET,
    timestampClock: "emulator",
    ...options,
  });
  return { emulator, catcher };
}

/** An inbound message, and with it one event; resolves when its first attempt has ended. */
export async function receive(emulator: Emulator, body = "hello"): Promise<Delivery> {
  emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body });
  await emulator.clock.idle();
  return newest(emulator);
}

export function newest(emulator: Emulator): Delivery {
  return emulator.control.deliveries().at(-1) as Delivery;
}

/** Changes a default webhook configuration through the API. */
export async function configure(
  emulator: Emulator,
  kind: "inbound" | "delivery",
  body: Record<string, unknown>,
): Promise<Called> {
  const token = await tokenOf(emulator);
  return call(emulator, "PATCH", `/api/core/webhooks/${kind}`, { token, body: { signingEnabled: true, ...body } });
}

/** HMAC-SHA256 over the caught header text and bytes. */
export function mac(key: string | Buffer, caught: Caught | undefined): Buffer {
  if (caught === undefined) throw new Error("nothing was caught");
  return createHmac("sha256", key).update(`${caught.timestamp}.`).update(caught.raw).digest();
}

/** It is signed with this secret, in hex. */
export function expectSigned(caught: Caught | undefined, secret: string | Buffer = SECRET): void {
  expect(caught?.signature).toBe(mac(secret, caught).toString("hex"));
}

/** When each attempt was made, in minutes from the first. */
export const minutesOf = ({ attempts }: Delivery) => attempts.map(({ at }) => (at - (attempts[0]?.at ?? 0)) / MINUTE);
