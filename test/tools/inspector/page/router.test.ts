import { describe, expect, it } from "vitest";
import { href, ifStillWanted, parseHash } from "../../../../src/tools/inspector/page/router.ts";

describe("parseHash()", () => {
  it.each([
    ["", { view: "events", id: null, params: {} }],
    [
      "#/events?state=dead&type=message.sent",
      { view: "events", id: null, params: { state: "dead", type: "message.sent" } },
    ],
    ["#/lane/7", { view: "lane", id: 7, params: {} }],
    ["#/lane/7?event=3", { view: "lane", id: 7, params: { event: "3" } }],
  ])("reads %s", (hash, route) => {
    expect(parseHash(hash)).toEqual(route);
  });

  it.each(["#/lane/-1", "#/lane/1.5", "#/lane/x", "#/lane/99999999999999999"])("takes no id from %s", (hash) => {
    expect(parseHash(hash).id).toBeNull();
  });
});

describe("href()", () => {
  it("is what parseHash() reads, whatever the texts, without what has no value", () => {
    const params = { type: "a&b=c?d#e/ü %", lane: "x" };
    expect(parseHash(href("events", null, params))).toEqual({ view: "events", id: null, params });
    expect(parseHash(href("lane", 7, { event: 3 }))).toEqual({ view: "lane", id: 7, params: { event: "3" } });
    expect(href("events", null, { state: "", type: undefined, after: null, late: "no" })).toBe("#/events?late=no");
    expect(href("dead")).toBe("#/dead");
  });
});

describe("ifStillWanted()", () => {
  it("settles only for what was asked for last, with its answer or its error", async () => {
    const settled: unknown[] = [];
    const note = (value: unknown) => void settled.push(value);
    ifStillWanted(Promise.resolve("one")).then(note, note);
    ifStillWanted(Promise.reject("two")).then(note, note);
    await ifStillWanted(Promise.resolve("three")).then(note, note);
    await ifStillWanted(Promise.reject("four")).then(note, note);
    expect(settled).toEqual(["three", "four"]);
  });
});
