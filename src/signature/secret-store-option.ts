/** Checks that what is given as a secret store is one, before anything reads from it. */
import { SetupError } from "../errors.ts";
import { numberOption } from "../internal/options.ts";
import { secretEncodingOption } from "./secret.ts";
import type { SecretStore } from "./secret-store.ts";

const METHODS = ["read", "write", "receivers", "close"] as const satisfies readonly (keyof SecretStore)[];

/** @throws SetupError naming what is missing or wrong */
export function secretStoreOption(name: string, value: SecretStore): SecretStore {
  for (const method of METHODS) {
    if (typeof value?.[method] === "function") continue;
    const message = `Option "${name}" is no secret store: it has no method ${method}(). sqliteSecrets() of oncehook/sqlite and postgresSecrets() of oncehook/postgres make one.`;
    throw new SetupError("invalid_option", message, { fields: { option: name } });
  }
  // Null, because a store without it must not get a default here.
  numberOption(`${name}.refreshMs`, value.refreshMs ?? null, 0, { min: 100, max: 30_000, unit: "ms" });
  secretEncodingOption(`${name}.encoding`, value.encoding);
  return value;
}
