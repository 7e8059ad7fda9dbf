/** What memory 40 bodies of 10 MiB take in a process that lists, views and handles them. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/stores/large-bodies-child.js", import.meta.url));

/** @param placeOf - makes a path, or a URL and a schema */
export function largeBodies(where: string, placeOf: () => readonly string[]): void {
  describe(`40 bodies of 10 MiB in ${where}`, () => {
    it("take less than 140 MiB of a process that lists, views and handles them", { timeout: 240_000 }, async () => {
      const place = placeOf();
      // What is measured is held, and is not garbage that V8 has not collected yet: on a busy machine its threads would fall behind.
      const flags = ["--expose-gc", "--single-threaded-gc", "--max-old-space-size=64"];
      const run = (mode: string) => promisify(execFile)(process.execPath, [...flags, CHILD, mode, ...place]);
      await run("fill");
      // How many, and how many MiB.
      const { handled, lists, view, worker } = JSON.parse((await run("read")).stdout) as Record<string, number>;
      expect(handled).toBe(40);
      expect(lists).toBeLessThan(20);
      expect(view).toBeLessThan(140);
      expect(worker).toBeLessThan(140);
    });
  });
}
