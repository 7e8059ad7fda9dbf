/** Secrets in a SQLite file of a test's own, with a key file beside it. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach } from "vitest";
import type { Sealing, SecretStore } from "../../src/sources/messaging/secret-store.ts";
import { type SqliteSecretsOptions, sqliteSecrets } from "../../src/stores/sqlite.ts";

export const SECRET = "a-webhook-signing-secret-of-32-b";
export const OLD = "the-secret-before-the-rotation-3";
export const NEXT = "the-secret-after-the-rotation-32";
export const SLOTS = { current: SECRET, previous: [], next: null, rotatedAt: null };
export const FULL = {
  current: SECRET,
  previous: [{ secret: OLD, validUntil: 2_000_000_000_000 }],
  next: { secret: NEXT, since: 1_760_000_000_000, rotatedAtBefore: null, hadSecret: true },
  rotatedAt: 1_750_000_000_000,
};

const stores: SecretStore[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

/** A key file beside `path`, which only its owner can read. */
export function makeKeyFile(path: string, text = randomBytes(32).toString("hex"), mode = 0o600): string {
  const file = join(dirname(path), "webhook.key");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

/** Secrets in the file at `path`, closed after the test. */
export function secretsAt(path: string, options: Partial<SqliteSecretsOptions> = {}): SecretStore {
  const sealed = options.sealing === undefined && options.keyFile === undefined ? { keyFile: keyOf(path) } : {};
  const store = sqliteSecrets(path, { ...sealed, ...options } as SqliteSecretsOptions);
  stores.push(store);
  return store;
}

function keyOf(path: string): string {
  const file = join(dirname(path), "webhook.key");
  return existsSync(file) ? file : makeKeyFile(path);
}

/** A key management service of toys: turns bits round, remembers what it was told. */
export function createSealing(): Sealing & { readonly contexts: string[] } {
  const contexts: string[] = [];
  const turned = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0xff);
  return {
    contexts,
    async seal(plain, context) {
      contexts.push(context);
      return turned(plain);
    },
    open: (sealed) => turned(sealed),
  };
}
