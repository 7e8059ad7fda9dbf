/**
 * As test/concurrency/alerts.test.ts, on a server.
 *
 * @module-tag full
 */
import { describe, inject } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { alertsSuite } from "../concurrency/alerts-scene.ts";
import { newSchema } from "./place.ts";

describe("alerts of processes on one server", () =>
  alertsSuite(async () => {
    const place = { url: inject("postgresUrl"), schema: newSchema() };
    return { place, store: postgresStore(place.url, { schema: place.schema }) as InboxStore<never> };
  }));
