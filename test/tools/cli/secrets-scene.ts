/** `oncehook secrets` on a place of a test's own, and the emulated service; what holds on every store. */
import { randomBytes } from "node:crypto";
import { Command } from "commander";
import { expect, onTestFinished } from "vitest";
import { silentLogger } from "../../../src/internal/logger.ts";
import { createEmulator, type EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import type { SecretStore } from "../../../src/sources/messaging/secret-store.ts";
import { secretsCommand } from "../../../src/tools/cli/secrets.ts";
import { type HereExit, rowsOf, runHere } from "./here.ts";
import { newFile } from "./place.ts";

export const SECRET = "the-secret-of-today-0123456789abcdef";

export interface Scene {
  run(...args: readonly string[]): Promise<HereExit>;
  /** The delivery secrets, as a receiver reads them. */
  stored(): ReturnType<SecretStore["read"]>;
}

/** A key of its own for the secrets at `address`, and the command on them. */
export function sceneOf(address: string, open: (keyFile: string) => SecretStore, place: readonly string[] = []): Scene {
  const keyFile = newFile(randomBytes(32).toString("hex"));
  const environment = { ONCEHOOK_STORE: address, ONCEHOOK_KEY_FILE: keyFile, ONCEHOOK_WEBHOOK_SECRET: SECRET };
  return {
    run(name = "", ...args) {
      const program = new Command("oncehook").exitOverride();
      return runHere(secretsCommand().copyInheritedSettings(program), [name, ...place, ...args], environment);
    },
    async stored() {
      const secrets = open(keyFile);
      return secrets.read("delivery").finally(() => secrets.close());
    },
  };
}

/** The service, as flags of `rotate`. */
export async function serviceOf(options: EmulatorOptions = {}) {
  const emulator = await createEmulator({ logger: silentLogger, clock: "real", ...options });
  onTestFinished(() => emulator.close());
  const secretFile = newFile(emulator.clientSecret);
  const flags = ["--base-url", emulator.url, "--client-id", emulator.clientId, "--client-secret-file", secretFile];
  const signsWith = () => {
    const configs = emulator.control.exportState().tables.webhooks as Record<string, { currentSecret: string }>;
    return configs["ac_main/delivery"]?.currentSecret;
  };
  return { flags, signsWith };
}

/** A life of the delivery secret: adopted, rotated, told, and none of it printed. */
export async function expectALife({ run, stored }: Scene): Promise<void> {
  const deliveryUrl = "http://127.0.0.1:9/webhooks";
  const { flags, signsWith } = await serviceOf({ deliveryUrl, webhookSecret: SECRET });
  const told: HereExit[] = [];
  const json = async (...args: string[]) => {
    const exit = await run(...args, "--json");
    told.push(exit);
    return [exit.code, ...rowsOf(exit)];
  };

  expect(await json("adopt", "--kind", "delivery", "--kind", "inbound")).toEqual([
    0,
    { kind: "delivery", adopted: true },
    { kind: "inbound", adopted: true },
  ]);
  expect(await json("adopt", "--kind", "delivery")).toEqual([0, { kind: "delivery", adopted: false }]);
  expect(await json("status", "--kind", "delivery")).toEqual([
    0,
    { kind: "delivery", phase: "settled", previousValidUntil: null, previousUses: 0, nextUses: 0, receivers: [] },
  ]);
  expect(await json("rotate", "--kind", "delivery", ...flags)).toEqual([
    0,
    {
      ...{ kind: "delivery", resumed: false, generated: false, receivers: 0 },
      ...{ rotatedAt: expect.any(Number), previousValidUntil: expect.any(Number) },
    },
  ]);
  const after = await stored();
  expect(after?.current).toMatch(/^[0-9a-f]{64}$/);
  expect(signsWith()).toBe(after?.current);
  expect(await json("status")).toMatchObject([0, { kind: "inbound", phase: "settled" }, { phase: "overlap" }]);

  const early = await run("rotate", "--kind", "delivery", ...flags);
  told.push(early);
  expect([early.code, early.output]).toEqual([3, ""]);
  expect(early.errors).toMatch(/^error: .*(?:valid|counts) until/m);
  expect((await run("rotate", "--kind", "delivery", "--force", ...flags)).code).toBe(0);
  told.push(await run("status"), await run("adopt", "--kind", "delivery"));
  for (const { output, errors } of told) {
    expect(`${output}${errors}`).not.toContain(SECRET);
    expect(`${output}${errors}`).not.toContain(after?.current);
  }
}
