/** Two receiver processes and a third one that rotates, on one SQLite file. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { compileKeyring } from "../../src/service/keyring.ts";
import { storedKeyring } from "../../src/service/keyring-source.ts";
import type { SecretSlots, SecretStore } from "../../src/service/secret-store.ts";
import { signPayload } from "../../src/service/sign.ts";
import { sqliteSecrets } from "../../src/stores/sqlite.ts";
import { newInboxFile, SECRET } from "./bench.ts";
import { inbound } from "./events.ts";

/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/receiver/stored-secrets-child.js", import.meta.url));
const NEXT = "the-secret-after-the-rotation-32";
const STRANGE = "a-secret-that-nobody-ever-stored";
const WITHIN = { timeout: 15_000, interval: 20 };

async function startReceiver(file: string, keyFile: string): Promise<number> {
  const child = spawn(process.execPath, [CHILD, file, keyFile], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill();
    await exited;
  });
  const [port] = await once(createInterface({ input: child.stdout }), "line");
  return Number(port);
}

async function post(port: number, secret: string, messageId: string): Promise<number> {
  const body = inbound({ messageId });
  const headers = signPayload({ body, secret });
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers: { ...headers }, body });
  await response.arrayBuffer();
  return response.status;
}

async function storedVersion(secrets: SecretStore): Promise<string> {
  const now = Date.now();
  return compileKeyring(await storedKeyring(secrets, now), now).version;
}

describe("two receiver processes on one file", () => {
  it("tell of a next secret without a restart, by the same version, and accept it before the service signs with it (RCV-9)", {
    tags: "full",
  }, async () => {
    const file = newInboxFile();
    const keyFile = `${file}.key`;
    writeFileSync(keyFile, randomBytes(32).toString("hex"), { mode: 0o600 });
    const secrets = sqliteSecrets(file, { keyFile });
    onTestFinished(() => secrets.close());
    const slots: SecretSlots = { current: SECRET, previous: [], next: null, rotatedAt: null };
    await secrets.write("inbound", slots, 0);
    const ports = await Promise.all([startReceiver(file, keyFile), startReceiver(file, keyFile)]);
    const versions = async () => (await secrets.receivers())?.map(({ keyringVersion }) => keyringVersion);
    const useWhatIsStored = async () => {
      const version = await storedVersion(secrets);
      await vi.waitFor(async () => expect(await versions()).toEqual([version, version]), WITHIN);
      return version;
    };
    const before = await useWhatIsStored();
    await secrets.write(
      "inbound",
      { ...slots, next: { secret: NEXT, since: Date.now(), rotatedAtBefore: null, hadSecret: true } },
      1,
    );
    expect(await useWhatIsStored()).not.toBe(before);
    for (const [index, port] of ports.entries()) {
      expect(await post(port, NEXT, `next ${index}`)).toBe(200);
      expect(await post(port, SECRET, `current ${index}`)).toBe(200);
      expect(await post(port, STRANGE, `strange ${index}`)).toBe(401);
    }
  });
});
