/** The whole state as JSON and back, checked record by record before anything of it is taken. */
import { z } from "zod";
import { SetupError } from "../../errors.ts";
import { isDeeper, MOST_LEVELS } from "../http/body.ts";
import { isUnderItsId } from "../state/record-ids.ts";
import { webhookId } from "../state/records.ts";
import { RECORD_SCHEMAS } from "../state/schemas.ts";
import { type State, TABLE_NAMES, type Tables } from "../state/state.ts";
import type { StateExport } from "./control.ts";
import { problemOf } from "./inputs.ts";

const tablesSchema = z
  .strictObject(
    Object.fromEntries(TABLE_NAMES.map((name) => [name, z.record(z.string(), RECORD_SCHEMAS[name] as z.ZodType)])),
  )
  .partial();

/** An export. */
export const stateSchema = z.strictObject({ version: z.literal(1), tables: tablesSchema });

export function exportState(state: State): StateExport {
  const tables = TABLE_NAMES.map((name) => [name, Object.fromEntries(state[name].entries())]);
  return { version: 1, tables: Object.fromEntries(tables) };
}

/**
 * The tables of an export, when all of it fits: a copy, so that its records are others than those of any state, and the caller's
 * stay the caller's.
 *
 * @throws SetupError when it is no export of this version, or names what it does not hold
 */
export function tablesOf(exported: unknown): StateExport["tables"] {
  if (isDeeper(exported, LEVELS_ABOVE_CALLS + MOST_LEVELS)) {
    throw unfit(`what a call brought is nested deeper than ${MOST_LEVELS} levels`);
  }
  const parsed = stateSchema.safeParse(exported);
  if (!parsed.success) throw unfit(problemOf(withoutId(parsed.error)));
  // As it came, not as the schemas order its fields: what is exported again is the same text.
  const { tables } = exported as StateExport;
  refuseStrayIds(tables);
  refuseMissingWebhooks(tables);
  refuseDeadReferences(tables);
  return copyOf(tables);
}

/** The export, its tables, a table and a record: in their fields lies what calls brought. */
const LEVELS_ABOVE_CALLS = 4;

/** The first problem, by its table and field. No record is named in what is said: its id can be a token, or a caller's key. */
function withoutId({ issues }: z.ZodError): z.ZodError {
  const [first] = issues;
  const path = first?.path.filter((_, depth) => depth !== ID_DEPTH) ?? [];
  return new z.ZodError(first === undefined ? [] : [{ ...first, path }]);
}

/** In `tables.tokens.<id>.expiresAt`. */
const ID_DEPTH = 2;

function refuseStrayIds(tables: StateExport["tables"]): void {
  for (const name of TABLE_NAMES) {
    const isWhole = Object.entries(tables[name] ?? {}).every(([id, record]) => isUnderItsId(name, id, record));
    if (!isWhole) throw unfit(`a record of ${name} is under an id that is not its own`);
  }
}

/** The service's webhook routes answer for both kinds of every client (WHK-17). */
function refuseMissingWebhooks(tables: StateExport["tables"]): void {
  for (const apiClientId of Object.keys(tables.clients ?? {})) {
    for (const kind of ["inbound", "delivery"] as const) {
      if (Object.hasOwn(tables.webhooks ?? {}, webhookId(apiClientId, kind))) continue;
      throw unfit(`a client has no record of webhooks for "${kind}"`);
    }
  }
}

/** What would leave a message without its sender, or a delivery without its body. A removed record's own log may stay. */
const REFERENCES: readonly { readonly table: keyof Tables; readonly field: string; readonly to: keyof Tables }[] = [
  { table: "clients", field: "accountId", to: "accounts" },
  { table: "webhooks", field: "apiClientId", to: "clients" },
  { table: "numbers", field: "apiClientId", to: "clients" },
  { table: "tokens", field: "apiClientId", to: "clients" },
  { table: "messages", field: "apiClientId", to: "clients" },
  { table: "messages", field: "numberId", to: "numbers" },
  { table: "inboundMessages", field: "numberId", to: "numbers" },
  { table: "deliveries", field: "eventId", to: "events" },
];

function refuseDeadReferences(tables: StateExport["tables"]): void {
  for (const { table, field, to } of REFERENCES) {
    for (const record of Object.values(tables[table] ?? {})) {
      const target = (record as Readonly<Record<string, string>>)[field] ?? "";
      if (!Object.hasOwn(tables[to] ?? {}, target)) throw unfit(`"${table}.${field}" names no record of ${to}`);
    }
  }
}

/** A program's records can hold anything, and what JSON has no form for could never be kept. */
function copyOf(tables: StateExport["tables"]): StateExport["tables"] {
  try {
    const copy = structuredClone(tables);
    for (const table of Object.values(copy)) for (const record of Object.values(table)) JSON.stringify(record);
    return copy;
  } catch (cause) {
    throw unfit("a record holds what is no JSON", cause);
  }
}

function unfit(problem: string, cause?: unknown): SetupError {
  return new SetupError("invalid_option", `This is no state that the emulator exported: ${problem}.`, { cause });
}
