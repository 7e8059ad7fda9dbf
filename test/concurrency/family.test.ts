/** What a test learns of a process's end: one that dies by itself must not pass for one that was stopped. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Child } from "./family.ts";

/** Ends with the wanted code at the first message, whatever that asks. */
const PROGRAM = `const { code } = JSON.parse(process.argv[2]);
process.on("message", () => process.exit(code));
process.send({ id: 0 });`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "oncehook-child-"));
  writeFileSync(join(folder, "program.mjs"), PROGRAM);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function started(code: number): Promise<Child> {
  const child = new Child({ code }, join(folder, "program.mjs"));
  await child.ready;
  return child;
}

describe("Child.strangeEnd", () => {
  it("is null for a process that was stopped and ended with 0, and for a killed one", async () => {
    const [stopped, killed] = await Promise.all([started(0), started(0)]);
    await Promise.all([stopped.stop(), killed.kill()]);
    expect([stopped.strangeEnd, killed.strangeEnd]).toEqual([null, null]);
  });

  it("tells of a stop with another code, and of a process that died by itself, whatever is done with it then", async () => {
    const children = await Promise.all([started(3), started(0), started(1)]);
    await children[0]?.stop();
    await Promise.all(children.slice(1).map((child) => child.stallMs()));
    await Promise.all(children.flatMap((child) => [child.stop(), child.kill()]));
    const ends = ["ended with 3 at a stop", "ended with 0 by itself", "ended with 1 by itself"];
    expect(children.map(({ strangeEnd }) => strangeEnd)).toEqual(ends);
  });
});
