/** What this example reads from its environment: where the database is, and how many processes share the work. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { SecretSet } from "oncehook";
import { EnvironmentError, readNumber, readSecrets, required } from "../shared/environment.ts";

export interface ClusterEnvironment {
  /** 0 picks a free one, the same for all workers. */
  readonly port: number;
  readonly workers: number;
  /** Of the inbox and of the application's own table. */
  readonly databaseUrl: string;
  readonly secrets: SecretSet;
}

/**
 * Reads `PORT` (default 3000), `WORKERS` (default: one per core), `DATABASE_URL`, and the secrets as all examples do;
 * `WEBHOOK_SECRET_FILE` names a file with the secret, where that is how secrets come to the machine.
 */
export function readClusterEnvironment(variables: NodeJS.ProcessEnv): ClusterEnvironment {
  return {
    port: readNumber("PORT", variables.PORT || "3000", 65_535),
    workers: readNumber("WORKERS", variables.WORKERS || String(availableParallelism()), 64, 1),
    databaseUrl: required(
      variables,
      "DATABASE_URL",
      "the database's address, postgres://user:password@host:5432/database,",
    ),
    secrets: readSecrets({ ...variables, WEBHOOK_SECRET: variables.WEBHOOK_SECRET || secretInFile(variables) }),
  };
}

function secretInFile({ WEBHOOK_SECRET_FILE: path }: NodeJS.ProcessEnv): string | undefined {
  if (!path) return undefined;
  try {
    // Editors and `echo` end a file with a newline, which is not part of the secret.
    return readFileSync(path, "utf8").trim();
  } catch {
    throw new EnvironmentError("WEBHOOK_SECRET_FILE cannot be read: put the path of the file with the secret in it.");
  }
}
