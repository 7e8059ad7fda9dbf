import { describe, expect, it } from "vitest";
import { createJournal } from "../../src/emulator/service.ts";
import type { Delivery } from "../../src/emulator/state/records.ts";
import { uncaughtErrors } from "../support/uncaught.ts";

describe("createJournal()", () => {
  it("tells each watcher in order until it ends", () => {
    const journal = createJournal();
    const seen: string[] = [];
    const unwatch = journal.watch(({ type }) => seen.push(`first: ${type}`));
    journal.watch(({ type }) => seen.push(`second: ${type}`));
    journal.tell({ type: "reset" });
    unwatch();
    journal.tell({ type: "reset" });
    expect(seen).toEqual(["first: reset", "second: reset", "second: reset"]);
  });

  it("tells what a watcher brings about when the others have heard of what it acted on", () => {
    const journal = createJournal();
    const seen: string[] = [];
    const unwatch = journal.watch(() => {
      unwatch();
      journal.tell({ type: "reset" });
    });
    journal.watch(({ type }) => seen.push(type));
    journal.tell({ type: "delivery", delivery: {} as Delivery });
    expect(seen).toEqual(["delivery", "reset"]);
  });

  it("lets a watcher that throws break neither the others nor what is told, and does not hide it", async () => {
    const errors = uncaughtErrors();
    const journal = createJournal();
    const seen: string[] = [];
    journal.watch(() => {
      throw new Error("a watcher's mistake");
    });
    journal.watch(({ type }) => seen.push(type));
    expect(() => journal.tell({ type: "reset" })).not.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual(["reset"]);
    expect(errors.map(String)).toEqual(["Error: a watcher's mistake"]);
  });
});
