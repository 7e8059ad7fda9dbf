/** The inspector's JSON API on Postgres: the same answers, the same drawings. */

import type { InboxStore } from "../../../src/index.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { changesSuite } from "../../tools/inspector/routes/changes.ts";
import { routesSuite } from "../../tools/inspector/routes/suite.ts";
import { newPool, newSchema } from "./place.ts";

routesSuite("Postgres", () => postgresStore(newPool(), { schema: newSchema() }) as InboxStore<never>);

changesSuite("Postgres", () => {
  const schema = newSchema();
  return [0, 1].map(() => postgresStore(newPool(), { schema }) as InboxStore<never>);
});
