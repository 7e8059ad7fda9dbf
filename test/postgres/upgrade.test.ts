import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, inject } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { type Place, upgradeTests } from "../upgrade/cases.ts";
import { newSchema, sql } from "./place.ts";

async function postgresPlace(): Promise<Place> {
  const schema = newSchema();
  return {
    text: `${inject("postgresUrl")} ${schema}`,
    async restore() {
      const dump = readFileSync(join(import.meta.dirname, "../upgrade/inbox-0.1.0.sql"), "utf8").replaceAll(
        "oncehook_fixture",
        schema,
      );
      // Its own settings, such as an empty search_path, end with the statement that the driver sends.
      await sql(dump.replace(/^SET .*;$|^SELECT pg_catalog.set_config.*;$/gm, ""));
    },
    store: () => postgresStore(inject("postgresUrl"), { schema }) as unknown as InboxStore<never>,
    async versions() {
      const rows = await sql(`select key, value from ${schema}.meta`);
      const meta = new Map(rows.map(({ key, value }) => [key, Number(value)]));
      return [meta.get("schema") ?? 0, meta.get("min_reader") ?? 0];
    },
  };
}

describe("Postgres and version 0.1.0", () => upgradeTests(postgresPlace, { old: 6, own: 7 }));
