/** Deliveries to two processes that restart at any time, in memory and on SQLite. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { sized } from "../setup/form.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { type Place, restartProperty } from "./restart-property.ts";

/** A store in memory outlives its receivers here, so two of them can share it. */
async function inMemory(): Promise<Place> {
  const store = memoryStore({ volatile: true }) as InboxStore<never>;
  let opened: ReturnType<typeof store.open> | undefined;
  const shared: InboxStore<never> = {
    ...store,
    capabilities: { ...store.capabilities, durable: true, shared: true },
    open: (context) => (opened ??= store.open(context)),
    close: async () => {},
  };
  return { open: () => shared, dispose: () => store.close() };
}

async function onSqlite(): Promise<Place> {
  const folder = await mkdtemp(join(MEMORY_DISK, "oncehook-"));
  const open = () => sqliteStore(join(folder, "inbox.db"), { minFreeBytes: 0 }) as unknown as InboxStore<never>;
  return { open, dispose: () => rm(folder, { recursive: true }) };
}

describe("memory", () => restartProperty(inMemory, sized({ quick: 200, full: 3_000 })));
describe("SQLite", () => restartProperty(onSqlite, sized({ quick: 60, full: 400 })));
