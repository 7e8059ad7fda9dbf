/** State files that are damaged, and those that others could read or change. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEmulator } from "../../src/emulator/index.ts";
import { SetupError } from "../../src/errors.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { send, start, tokenOf } from "./support.ts";

const PAGE_BYTES = 4_096;

describe("a damaged state file", () => {
  it("has noise in its pages, whichever", async () => {
    const state = await keptState();
    const whole = readFileSync(state);
    const pages = whole.byteLength / PAGE_BYTES;
    expect(pages).toBeGreaterThan(4);
    for (let page = 1; page < pages; page++) {
      const noise = Buffer.from(Array.from({ length: PAGE_BYTES }, (_, i) => (i * 131 + page * 29 + 7) % 251));
      writeFileSync(
        state,
        Buffer.concat([whole.subarray(0, page * PAGE_BYTES), noise, whole.subarray((page + 1) * PAGE_BYTES)]),
      );
      await isDamaged(state);
    }
  });

  it.each([
    ["to a page", PAGE_BYTES],
    ["to a page and a half", PAGE_BYTES * 1.5],
    ["to half of its header", 50],
    ["to ten bytes", 10],
  ])("was cut %s", async (_, length) => {
    const state = await keptState();
    truncateSync(state, length);
    await isDamaged(state);
  });

  it.each([
    ["no table of records", "DROP TABLE records; CREATE TABLE others (id INTEGER)"],
    ["a table of records without texts", "DROP TABLE records; CREATE TABLE records (position INTEGER PRIMARY KEY)"],
    ["a record under another's id", `UPDATE records SET id = 'num_9' WHERE id = 'num_000001'`],
    ["a record of a table's prototype", `UPDATE records SET id = '__proto__' WHERE id = 'num_000001'`],
  ])("has %s", async (_, sql) => {
    const state = await keptState();
    const db = new Database(state);
    db.exec(sql);
    db.close();
    await isDamaged(state);
  });
});

describe.skipIf(process.platform === "win32")("a state file that others can read", () => {
  it("is its owner's alone from then on", async () => {
    const state = await keptState();
    chmodSync(state, 0o644);
    await start({ state });
    for (const file of [state, `${state}-wal`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("stays as it is when it is another program's", async () => {
    const state = newFile();
    const db = new Database(state);
    db.exec("CREATE TABLE theirs (id INTEGER)");
    db.close();
    chmodSync(state, 0o644);
    await expect(start({ state })).rejects.toThrow(/another program's/);
    expect(statSync(state).mode & 0o777).toBe(0o644);
  });
});

describe.skipIf(process.platform === "win32")("a state file that others can change", () => {
  it("is refused when another user owns it, also behind a link, and stays as it is", async ({ skip }) => {
    if (process.geteuid?.() !== 0) skip("needs root, which can give files to other users");
    const state = await keptState();
    const link = newFile();
    symlinkSync(state, link);
    chmodSync(state, 0o644);
    chownSync(state, 54_321, 54_321);
    const refused = {
      code: "unsafe_location",
      message: expect.stringContaining(`run "chown 0 ${realpathSync(state)}"`),
    };
    for (const path of [state, link]) await expect(start({ state: path })).rejects.toMatchObject(refused);
    expect(statSync(state)).toMatchObject({ uid: 54_321, mode: 0o100644 });
  });

  it("is refused when its mode lets them, and when its log's does", async () => {
    const state = await keptState();
    chmodSync(state, 0o666);
    await expect(start({ state })).rejects.toMatchObject({ message: expect.stringContaining(`chmod go-w ${state}`) });
    chmodSync(state, 0o600);
    writeFileSync(`${state}-wal`, "");
    chmodSync(`${state}-wal`, 0o622);
    await expect(start({ state })).rejects.toMatchObject({
      message: expect.stringContaining(`chmod go-w ${state}-wal`),
    });
  });

  it("keeps its log beside the file that a link leads to, both for its owner alone", async () => {
    const state = await keptState();
    const link = newFile();
    symlinkSync(state, link);
    chmodSync(state, 0o644);
    await start({ state: link });
    for (const file of [state, `${state}-wal`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

it("stays locked for other processes when this one tried to open it again", async () => {
  const state = newFile();
  await start({ state });
  await expect(start({ state })).rejects.toThrow(/in use by another emulator/);
  const script = `new (require("better-sqlite3"))(process.argv[1], { timeout: 0 }).prepare("SELECT * FROM records").all()`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", script, state], { encoding: "utf8" });
  expect([status, /database is locked/.test(stderr)]).toEqual([1, true]);
});

/** The file of an emulator that has ended, with some traffic in it. */
async function keptState(): Promise<string> {
  const state = newFile();
  const emulator = await createEmulator({ state, port: null, logger: silentLogger, lifecycle: "instant" });
  const token = await tokenOf(emulator);
  for (let i = 0; i < 5; i++) await send(emulator, token);
  await emulator.close();
  return state;
}

/** Refused so, and left to others: twice, since a connection that stayed open would hold the file. */
async function isDamaged(state: string): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const error = await start({ state }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SetupError);
    expect((error as SetupError).message).toMatch(/^The file of the option "state" is damaged/);
    expect((error as SetupError).fields).toEqual({ option: "state" });
  }
}

function newFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "oncehook-damaged-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "state.db");
}
