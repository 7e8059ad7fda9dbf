/** The store behind an address that a person types: a file's path, or the URL of a database. */
import { type Command, Option } from "commander";
import type { InboxStore } from "../inbox/store.ts";
import { CommandError, USAGE_MISTAKE } from "./failure.ts";

const POSTGRES = /^postgres(?:ql)?:\/\//;
const ENVIRONMENT = "ONCEHOOK_STORE";

/** Gives a command `--store`, which the environment may hold too: a database's URL has a password in it. */
export function addStoreFlags(command: Command): Command {
  const store = new Option("--store <address>", "the inbox: a SQLite file, or postgres://…").env(ENVIRONMENT);
  return command.addOption(store).option("--schema <name>", "the inbox's schema, on Postgres (default: oncehook)");
}

export interface StoreFlags {
  readonly store?: string;
  readonly schema?: string;
}

/** Where an inbox is: a file, or a database with its schema. */
export type InboxAddress =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema?: string };

/** What it cannot be is refused here, without showing the address. @throws CommandError */
export function addressOf({ store: address, schema }: StoreFlags): InboxAddress {
  if (address === undefined || address === "")
    throw new CommandError(`Say which inbox: --store inbox.db, or ${ENVIRONMENT} in the environment.`, USAGE_MISTAKE);
  if (POSTGRES.test(address)) return { kind: "postgres", url: address, ...(schema === undefined ? {} : { schema }) };
  if (schema !== undefined) throw new CommandError("--schema goes with a postgres:// address.", USAGE_MISTAKE);
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(address))
    throw new CommandError("--store takes a SQLite file or a postgres:// URL.", USAGE_MISTAKE);
  return { kind: "sqlite", path: address.replace(/^sqlite:/, "") };
}

/** The store that is meant; not open. @throws CommandError */
export async function storeAt(flags: StoreFlags): Promise<InboxStore<never>> {
  const address = addressOf(flags);
  if (address.kind === "postgres") {
    const { url, kind: _, ...options } = address;
    const { postgresStore } = await import("../stores/postgres.ts");
    return postgresStore(url, options) as InboxStore<never>;
  }
  const { sqliteStore } = await import("../stores/sqlite.ts");
  return sqliteStore(address.path) as InboxStore<never>;
}
