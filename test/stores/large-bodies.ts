/** What memory 40 bodies of 10 MiB take in a process that lists, views and handles them. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/stores/large-bodies-child.js", import.meta.url));

interface Growth {
  readonly handled: number;
  /** MiB. */
  readonly lists: number;
  readonly view: number;
  readonly worker: number;
}

/** @param place - a path, or a URL and a schema */
export async function growthAt(...place: readonly string[]): Promise<Growth> {
  // What is measured is held, and is not garbage that V8 has not collected yet.
  const run = (mode: string) =>
    promisify(execFile)(process.execPath, ["--expose-gc", "--max-old-space-size=64", CHILD, mode, ...place]);
  await run("fill");
  return JSON.parse((await run("read")).stdout);
}
