/** A place of its own for each test of the SQLite store, removed afterwards. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { InboxStore, OpenContext } from "../../src/inbox/store.ts";
import { contextOf } from "./sqlite-turns.ts";

const directories: string[] = [];
const stores: InboxStore<never>[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

/** A path for an inbox in a directory of its own, removed after the test. */
export function makePath(): string {
  const directory = mkdtempSync(join(tmpdir(), "oncehook-"));
  directories.push(directory);
  return join(directory, "inbox.db");
}

/** Opens `store`; it is closed after the test. */
export async function open<Db>(store: InboxStore<Db>, overrides: Partial<OpenContext> = {}): Promise<InboxStore<Db>> {
  await store.open(contextOf(overrides));
  stores.push(store as InboxStore<never>);
  return store;
}
