/**
 * Several processes that watch one inbox: no alert is missed while they are killed, every repeat is the first one, and without kills each comes once.
 *
 * @module-tag full
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { alertsSuite } from "./alerts-scene.ts";

describe("alerts of processes on one file", () =>
  alertsSuite(async () => {
    const folder = await mkdtemp(join(tmpdir(), "oncehook-alerts-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "inbox.db");
    return { place: { path }, store: sqliteStore(path) as InboxStore<never> };
  }));
