/** Secrets in a schema of a test's own, with a key file, closed after the test. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { SecretStore } from "../../src/service/secret-store.ts";
import { type PgPool, type PostgresSecretsOptions, postgresSecrets } from "../../src/stores/postgres.ts";
import { newPool } from "./place.ts";

/** A file that only its owner can read, with a key that no other has. */
export function newKeyFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-secrets-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "webhook.key");
  writeFileSync(file, randomBytes(32).toString("hex"), { mode: 0o600 });
  return file;
}

/** By default over a pool of its own, as on another machine. */
export function secretsIn(options: PostgresSecretsOptions, database: string | PgPool = newPool()): SecretStore {
  const secrets = postgresSecrets(database, options);
  onTestFinished(() => secrets.close());
  return secrets;
}
