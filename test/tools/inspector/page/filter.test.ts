import { describe, expect, it, vi } from "vitest";
import { fromAddress, queryOf, toAddress } from "../../../../src/tools/inspector/page/filter.ts";

describe("toAddress()", () => {
  it.each([
    ["peer", "+4915112345678"],
    ["peer", "112"],
    ["reference", "order of 0151 1234-5678"],
    ["lane", "4915112345678"],
    ["type", "(0151) 12 34 56 78"],
  ])("keeps a number of %s out of the address", (name, text) => {
    const written = toAddress(name, text);
    expect(written).toMatch(/^\*\w+\.\d+$/);
    expect(fromAddress(written)).toBe(text);
  });

  it.each([
    ["lane", "msg_01JABC"],
    ["id", "msg_copy00000001"],
    ["reference", "order-17"],
    ["from", "2026-11-22T13:09"],
    ["peer", ""],
  ])("leaves %s as it is written: %s", (name, text) => {
    expect(toAddress(name, text)).toBe(text);
  });

  it("gives the same number the same place", () => {
    expect(toAddress("peer", "+4915100000001")).toBe(toAddress("peer", "+4915100000001"));
  });
});

describe("fromAddress()", () => {
  it("knows nothing of what another page kept, and takes its place for none of its own", async () => {
    expect(fromAddress("*12345")).toBe("");
    const place = toAddress("peer", "+4915112345678");
    vi.resetModules();
    const after: typeof import("../../../../src/tools/inspector/page/filter.ts") = await import(
      "../../../../src/tools/inspector/page/filter.ts"
    );
    after.toAddress("peer", "+4915100000001");
    expect(after.fromAddress(place)).toBe("");
  });
});

describe("queryOf()", () => {
  it("asks for everything without filters, and for how an event ended by its outcome", () => {
    expect(queryOf({})).toEqual({});
    expect(queryOf({ state: "unhandled" })).toEqual({ states: ["done"], outcome: "unhandled" });
    expect(queryOf({ state: "filtered" })).toEqual({ states: ["done"], outcome: "filtered" });
    expect(queryOf({ state: "dead" })).toEqual({ states: ["dead"] });
  });

  it("tells yes and no apart, and takes the last minute whole", () => {
    expect(queryOf({ late: "no", conflict: "yes" })).toEqual({ late: false, conflict: true });
    const at = new Date(2026, 10, 22, 13, 9).getTime();
    expect(queryOf({ from: "2026-11-22T13:09", to: "2026-11-22T13:09" })).toEqual({
      acceptedFrom: at,
      acceptedTo: at + 59_999,
    });
  });

  it.each(["peer", "reference", "lane", "id"])("asks for nothing where the number of %s is no longer kept", (name) => {
    expect(() => queryOf({ state: "dead", [name]: "*1kx.0" })).toThrow(/not kept over a reload/);
  });

  it("puts a kept number back", () => {
    const peer = toAddress("peer", "+4915112345678");
    expect(
      queryOf({ peer, reference: "order-17", type: "message.sent", error: "E", lane: "l", id: "i", tenant: "t" }),
    ).toEqual({
      peer: "+4915112345678",
      externalReference: "order-17",
      eventType: "message.sent",
      errorCode: "E",
      lane: "l",
      id: "i",
      tenant: "t",
    });
  });
});
