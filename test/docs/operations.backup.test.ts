/**
 * What docs/operations.md says of backups: made beside a receiver at work, and what is a repeat for a restored one.
 *
 * @module-tag full
 */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type Receiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { deliver, fixtures, TEST_SECRET } from "../../src/tools/testing/index.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-backup-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A receiver on that file that notes which messages it handled. */
async function working(file: string, handled: string[]): Promise<Receiver> {
  const receiver = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(file), logger: silentLogger }) as Receiver;
  receiver.on("message.inbound", (event) => void handled.push(event.data.messageId));
  await receiver.start();
  onTestFinished(() => receiver.stop());
  return receiver;
}

const message = (index: number) => fixtures.inbound({ messageId: `msg_${index}` });
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);
const names = (from: number, to: number) => range(from, to).map((index) => `msg_${index}`);

/** By name, as the page names them. */
const WAYS: Readonly<Record<string, (file: string, backup: string) => unknown>> = {
  "VACUUM INTO": (file, backup) => {
    const db = new Database(file);
    db.prepare("vacuum into ?").run(backup);
    db.close();
  },
  ".backup": async (file, backup) => {
    const db = new Database(file);
    await db.backup(backup);
    db.close();
  },
};

describe.each(Object.keys(WAYS))("a backup by %s beside a receiver at work", (way) => {
  it("is whole, knows what came before it, and takes again what came after it", async () => {
    const folder = newFolder();
    const [file, backup] = [join(folder, "inbox.db"), join(folder, "backup.db")];
    const before: string[] = [];
    const receiver = await working(file, before);
    for (const index of range(0, 20)) await deliver(receiver, message(index));
    const meanwhile = Promise.all(range(20, 60).map((index) => deliver(receiver, message(index))));
    await WAYS[way]?.(file, backup);
    await meanwhile;
    for (const index of range(60, 80)) await deliver(receiver, message(index));
    await receiver.stop();
    expect([...before].sort()).toEqual(names(0, 80).sort());

    const db = new Database(backup, { readonly: true });
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    db.close();
    const restored = join(folder, "restored.db");
    copyFileSync(backup, restored);
    const again: string[] = [];
    const second = await working(restored, again);
    for (const index of range(0, 80)) await deliver(second, message(index));
    expect(again.filter((name) => names(0, 20).includes(name))).toEqual([]);
    expect(again.filter((name) => names(60, 80).includes(name))).toEqual(names(60, 80));
  });
});
