/** What a power cut leaves of files that were written, synced, shortened and removed. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/tools/testing/index.ts";
import { Disk, type Operation } from "./power-disk.ts";

const write = (path: string, at: number, text: string): Operation => ({
  ...{ kind: "write", path, at },
  bytes: Buffer.from(text),
});
const diskAfter = (operations: readonly Operation[]) => {
  const disk = new Disk();
  for (const operation of operations) disk.apply(operation);
  return disk;
};
const texts = (files: ReadonlyMap<string, Buffer>) =>
  Object.fromEntries([...files].map(([path, content]) => [path, content.toString()]));

const MADE: readonly Operation[] = [{ kind: "create", path: "a" }, { kind: "sync_folder" }];

describe("strict()", () => {
  it("holds what was synced, and nothing that was written since", () => {
    const disk = diskAfter([...MADE, write("a", 0, "one"), { kind: "sync", path: "a" }, write("a", 3, "two")]);
    expect(texts(disk.strict())).toEqual({ a: "one" });
  });

  it("holds no file whose folder was not synced since it was made, and one that was removed without that", () => {
    const made = diskAfter([...MADE, { kind: "create", path: "b" }, write("b", 0, "b"), { kind: "sync", path: "b" }]);
    expect(texts(made.strict())).toEqual({ a: "" });
    const removed = diskAfter([...MADE, { kind: "remove", path: "a" }]);
    expect(texts(removed.strict())).toEqual({ a: "" });
  });

  it("tells a file from a later one of its name, and knows a renamed one", () => {
    const again: Operation[] = [{ kind: "remove", path: "a" }, { kind: "create", path: "a" }, write("a", 0, "new")];
    const disk = diskAfter([...MADE, write("a", 0, "old"), { kind: "sync", path: "a" }, ...again]);
    expect(texts(disk.strict())).toEqual({ a: "old" });
    disk.apply({ kind: "rename", path: "a", to: "c" });
    disk.apply({ kind: "sync", path: "c" });
    disk.apply({ kind: "sync_folder" });
    expect(texts(disk.strict())).toEqual({ c: "new" });
  });

  it("refuses a change of a file that nobody made", () => {
    expect(() => diskAfter([write("a", 0, "x")])).toThrow(/nobody made it/);
  });
});

describe("seen()", () => {
  it("holds what programs see: every change, and the names as they are now", () => {
    const changes: Operation[] = [write("a", 0, "long text"), { kind: "truncate", path: "a", length: 4 }];
    const disk = diskAfter([...MADE, ...changes, { kind: "create", path: "b" }, { kind: "remove", path: "b" }]);
    expect(texts(disk.seen())).toEqual({ a: "long" });
  });
});

describe("torn()", () => {
  const SECTORS = 4;
  const page = (letter: string) => letter.repeat(512 * SECTORS);

  it("holds each sector as it was at some moment since the sync, never mixed within", () => {
    const disk = diskAfter([...MADE, write("a", 0, page("s")), { kind: "sync", path: "a" }]);
    disk.apply(write("a", 0, page("x")));
    disk.apply(write("a", 0, page("y")));
    const seen = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const content = String(disk.torn(seededRandom(seed)).get("a"));
      const sectors = Array.from({ length: SECTORS }, (_, index) => content.slice(index * 512, (index + 1) * 512));
      for (const sector of sectors) expect(sector).toMatch(/^(s{512}|x{512}|y{512})$/);
      seen.add(sectors.map((sector) => sector[0]).join(""));
    }
    // All old, all new, and mixed.
    expect([...seen]).toEqual(expect.arrayContaining(["ssss", "yyyy"]));
    expect(seen.size).toBeGreaterThan(20);
  });

  it("has lengths and zeros as a file that grew or was shortened may have them", () => {
    const disk = diskAfter([...MADE, write("a", 0, page("s")), { kind: "sync", path: "a" }]);
    disk.apply({ kind: "truncate", path: "a", length: 512 });
    disk.apply(write("a", 1_024, "z".repeat(512)));
    const seen = new Set<number>();
    for (let seed = 0; seed < 200; seed++) {
      const content = String(disk.torn(seededRandom(seed)).get("a"));
      seen.add(content.length);
      expect(content.slice(0, 512)).toBe("s".repeat(512));
      expect(content.slice(512, 1_024)).toMatch(/^(s{512}|\0{512})?$/);
      expect(content.slice(1_024, 1_536)).toMatch(/^(s{512}|\0{512}|z{512})?$/);
    }
    expect(seen).toEqual(new Set([512, 1_536, 2_048]));
  });

  it("holds everything once it is synced", () => {
    const disk = diskAfter([...MADE, write("a", 0, page("x")), { kind: "sync", path: "a" }]);
    for (let seed = 0; seed < 10; seed++) expect(disk.torn(seededRandom(seed)).get("a")?.toString()).toBe(page("x"));
  });
});
