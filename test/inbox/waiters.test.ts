import { describe, expect, it } from "vitest";
import { type ClaimEnding, Waiters } from "../../src/inbox/completion.ts";

describe("Waiters", () => {
  it("tells each end of an event to those who wait for it, until they stop", () => {
    const waiters = new Waiters();
    const heard: [string, ClaimEnding][] = [];
    const stopA = waiters.add(1, (ending) => heard.push(["a", ending]));
    const stopB = waiters.add(1, (ending) => {
      heard.push(["b", ending]);
      stopB();
    });
    waiters.add(2, (ending) => heard.push(["other", ending]));
    expect([waiters.count(1), waiters.count(2), waiters.count(3)]).toEqual([2, 1, 0]);
    waiters.ended(1, "retry");
    waiters.ended(1, "done");
    waiters.ended(3, "dead");
    expect(heard).toEqual([
      ["a", "retry"],
      ["b", "retry"],
      ["a", "done"],
    ]);
    stopA();
    stopA();
    expect(waiters.count(1)).toBe(0);
  });
});
