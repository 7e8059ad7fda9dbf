/** An inbox of a test's own, and `oncehook inbox` on it in this process. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { onTestFinished } from "vitest";
import { inboxCommand } from "../../src/cli/inbox/command.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { contextOf } from "../stores/sqlite-turns.ts";
import { type HereExit, runHere } from "./here.ts";

/** The file of an inbox that goes with the test. */
export async function newInbox(fill: (store: InboxStore<never>) => Promise<void>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-inbox-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "inbox.db");
  await inStore(path, fill);
  return path;
}

/** What a receiver beside the command does. */
export async function inStore(path: string, work: (store: InboxStore<never>) => Promise<void>): Promise<void> {
  const store = sqliteStore(path) as InboxStore<never>;
  await store.open(contextOf());
  await work(store).finally(() => store.close());
}

export function inbox(path: string, ...args: readonly string[]): Promise<HereExit> {
  const program = new Command("oncehook").exitOverride();
  return runHere(inboxCommand().copyInheritedSettings(program), args, { ONCEHOOK_STORE: path });
}

/** What it printed with `--json`. */
export function rowsOf({ output }: HereExit): readonly Record<string, unknown>[] {
  return output.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}
