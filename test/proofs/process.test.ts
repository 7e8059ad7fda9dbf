/** What a programme learns of a process's end: one that dies by itself must not pass for one that was stopped. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Asked } from "./process.ts";

/** Ends with the wanted code when it is asked something, whatever that is, and when nobody asks any more. */
const PROGRAM = `const { code } = JSON.parse(process.argv[2]);
if (!process.connected) process.exit(code);
for (const end of ["message", "disconnect"]) process.on(end, () => process.exit(code));`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "oncehook-child-"));
  writeFileSync(join(folder, "program.mjs"), PROGRAM);
});
afterAll(() => rmSync(folder, { recursive: true }));

const started = (code: number) => new Asked(join(folder, "program.mjs"), { code });

describe("Asked.strangeEnd", () => {
  it("is null for a process that was stopped and ended with 0, and for a killed one", async () => {
    const [stopped, killed] = [started(0), started(0)];
    expect(await stopped.stop()).toEqual([]);
    await killed.kill();
    expect([stopped.strangeEnd, killed.strangeEnd]).toEqual([null, null]);
  });

  it("tells of a stop with another code", async () => {
    expect(await started(3).stop()).toEqual(["a process ended with 3 at a stop"]);
  });

  it("tells of a process that died by itself, whatever is done with it afterwards", async () => {
    const children = [started(0), started(1)];
    for (const child of children) await expect(child.ask("anything")).rejects.toThrow(/it ended with \d by itself/);
    await Promise.all(children.flatMap((child) => [child.stop(), child.kill()]));
    expect(children.map(({ strangeEnd }) => strangeEnd)).toEqual(["ended with 0 by itself", "ended with 1 by itself"]);
  });
});
