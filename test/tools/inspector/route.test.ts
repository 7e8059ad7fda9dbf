/** The JSON API on the embedded stores. */
import type { InboxStore } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { newInboxFile } from "../../receiver/bench.ts";
import { changesSuite } from "./routes/changes.ts";
import { routesSuite } from "./routes/suite.ts";

routesSuite("memory", () => memoryStore({ volatile: true }));
routesSuite("SQLite", () => sqliteStore(newInboxFile()) as InboxStore<never>);

changesSuite("memory", () => [memoryStore({ volatile: true })], { handlesAlone: true });
changesSuite("SQLite", () => {
  const file = newInboxFile();
  return [sqliteStore(file) as InboxStore<never>, sqliteStore(file) as InboxStore<never>];
});
