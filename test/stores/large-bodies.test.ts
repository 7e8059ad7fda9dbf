import { describe, expect, it } from "vitest";
import { growthAt } from "./large-bodies.ts";
import { makePath } from "./sqlite-place.ts";

describe("40 bodies of 10 MiB in a SQLite file", () => {
  it("take less than 150 MiB of a process that lists, views and handles them", { timeout: 240_000 }, async () => {
    const { handled, lists, view, worker } = await growthAt(makePath());
    expect(handled).toBe(40);
    expect(lists).toBeLessThan(20);
    expect(view).toBeLessThan(150);
    expect(worker).toBeLessThan(150);
  });
});
