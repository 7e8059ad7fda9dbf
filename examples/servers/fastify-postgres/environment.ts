/** What this example reads from its environment: where the database is, and how many processes share the work. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { SecretSet } from "oncehook";
import { EnvironmentError, readNumber, readSecrets, required } from "../../shared/environment.ts";

export interface ClusterEnvironment {
  /** 0 picks a free one, the same for all workers. */
  readonly port: number;
  readonly workers: number;
  /** Of the inbox and of the application's own table. */
  readonly databaseUrl: string;
  readonly secrets: SecretSet;
}

/** More than these have to be asked for: each takes connections of the server, which by default has 100 for all. */
const MOST_WORKERS_UNASKED = 8;

/**
 * Reads `PORT` (default 3000), `WORKERS` (default: one per core, at most 8), `DATABASE_URL`, and the secrets as all examples do;
 * `WEBHOOK_SECRET_FILE` names a file with the secret, where that is how secrets come to the machine.
 */
export function readClusterEnvironment(
  variables: NodeJS.ProcessEnv,
  cores: number = availableParallelism(),
): ClusterEnvironment {
  return {
    port: readNumber("PORT", variables.PORT || "3000", 65_535),
    workers: readNumber("WORKERS", variables.WORKERS || String(Math.min(cores, MOST_WORKERS_UNASKED)), 64, 1),
    databaseUrl: readDatabaseUrl(variables),
    secrets: readSecrets({ ...variables, WEBHOOK_SECRET: variables.WEBHOOK_SECRET || secretInFile(variables) }),
  };
}

function readDatabaseUrl(variables: NodeJS.ProcessEnv): string {
  const address = "postgres://user:password@host:5432/database";
  const text = required(variables, "DATABASE_URL", `the database's address, ${address},`);
  if (/^postgres(ql)?:\/\//.test(text)) return text;
  throw new EnvironmentError(`DATABASE_URL is not the address of a database: put ${address} in it.`);
}

function secretInFile({ WEBHOOK_SECRET_FILE: path }: NodeJS.ProcessEnv): string {
  if (!path) {
    throw new EnvironmentError(
      "Neither WEBHOOK_SECRET nor WEBHOOK_SECRET_FILE is set: put the webhook's signing secret in the one, or the path of a file with it in the other.",
    );
  }
  // Editors and `echo` end a file with a newline, which is not part of the secret.
  const secret = contentOf(path).trim();
  if (secret) return secret;
  throw new EnvironmentError("WEBHOOK_SECRET_FILE names an empty file: put the webhook's signing secret in it.");
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new EnvironmentError("WEBHOOK_SECRET_FILE cannot be read: put the path of the file with the secret in it.");
  }
}
