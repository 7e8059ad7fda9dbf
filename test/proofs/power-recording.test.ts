/** Calls that strace shows in two pieces, since another thread made one meanwhile. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Operation } from "./power-disk.ts";
import { type Acknowledgement, Recording } from "./power-recording.ts";

const FOLDER = "/inbox";
const hex = (text: string) => Buffer.from(text).toString("hex").replace(/../g, "\\x$&");
const FILE = `18<${hex(`${FOLDER}/inbox.db`)}>`;
const ANOTHER = '9 write(17<anon_inode:[eventfd]>, "\\x01", 8) = 8';

async function read(lines: readonly string[]): Promise<(Operation | Acknowledgement)[]> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-recording-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const log = join(folder, "calls");
  writeFileSync(log, lines.join("\n"));
  const found: (Operation | Acknowledgement)[] = [];
  for await (const operation of new Recording(FOLDER).read(log)) found.push(operation);
  return found;
}

/** The result stands in a column of its own. */
const inTwo = (call: string, name: string, result: string) => [
  `7 ${call} <unfinished ...>`,
  ANOTHER,
  `7 <... ${name} resumed>)           = ${result}`,
];

describe("Recording", () => {
  it("reads a write", async () => {
    const write = { kind: "write", path: "inbox.db", at: 8_192, bytes: Buffer.from("page") };
    const call = `pwrite64(${FILE}, "${hex("page")}", 4, 8192`;
    expect(await read([`7 ${call}) = 4`])).toEqual([write]);
    expect(await read(inTwo(call, "pwrite64", "4"))).toEqual([write]);
  });

  it("reads a length that was set", async () => {
    const truncate = { kind: "truncate", path: "inbox.db", length: 4_096 };
    expect(await read([`7 ftruncate(${FILE}, 4096) = 0`])).toEqual([truncate]);
    expect(await read(inTwo(`ftruncate(${FILE}, 4096`, "ftruncate", "0"))).toEqual([truncate]);
  });

  it("reads a sync", async () => {
    expect(await read(inTwo(`fdatasync(${FILE}`, "fdatasync", "0"))).toEqual([{ kind: "sync", path: "inbox.db" }]);
  });

  it("refuses a write of which only a part was written", async () => {
    await expect(read([`7 pwrite64(${FILE}, "${hex("page")}", 4, 8192) = 3`])).rejects.toThrow(/not understood/);
  });
});
