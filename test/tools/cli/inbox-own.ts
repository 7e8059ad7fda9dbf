/** Inboxes of a test's own, and `oncehook inbox` on them in this process. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import type { InboxStore } from "../../../src/inbox/store.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { inboxCommand } from "../../../src/tools/cli/inbox/command.ts";
import { contextOf } from "../../stores/sqlite-turns.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import { type HereExit, runHere } from "./here.ts";
import { fillInbox } from "./inbox-place.ts";

/** The file of an inbox that goes with the test. */
export async function newInbox(fill: (store: InboxStore<never>) => Promise<void>): Promise<string> {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-inbox-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "inbox.db");
  await inStore(path, fill);
  return path;
}

/** One that `fillInbox` made for the tests of a file, and copies for those that act. */
export function filledInbox(): { readonly folder: string; readonly filled: string; copy(): string } {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-inbox-"));
  const filled = join(folder, "filled.db");
  let copies = 0;
  beforeAll(() => fillInbox(filled));
  afterAll(() => rmSync(folder, { recursive: true }));
  const copy = () => {
    copies += 1;
    mkdirSync(join(folder, `${copies}`));
    copyFileSync(filled, join(folder, `${copies}`, "inbox.db"));
    return join(folder, `${copies}`, "inbox.db");
  };
  return { folder, filled, copy };
}

/** What a receiver does besides the command. */
export async function inStore(path: string, work: (store: InboxStore<never>) => Promise<unknown>): Promise<void> {
  const store = sqliteStore(path, { minFreeBytes: 0 }) as InboxStore<never>;
  await store.open(contextOf());
  await work(store).finally(() => store.close());
}

export function inbox(path: string, ...args: readonly string[]): Promise<HereExit> {
  const program = new Command("oncehook").exitOverride();
  return runHere(inboxCommand().copyInheritedSettings(program), args, { ONCEHOOK_STORE: path });
}

/** What a command prints that ends well. */
export async function printed(path: string, ...args: readonly string[]): Promise<string> {
  const { code, output, errors } = await inbox(path, ...args);
  expect([code, errors]).toEqual([0, ""]);
  return output;
}
