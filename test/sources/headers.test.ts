import { describe, expect, it } from "vitest";
import { readHeader, readTrace } from "../../src/sources/headers.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../src/sources/messaging/sign.ts";

describe("readHeader()", () => {
  it("reads fetch Headers, joining duplicates in order", () => {
    const headers = new Headers([
      ["X-Service-Signature", "a"],
      ["x-service-signature", "b"],
    ]);
    expect(readHeader(headers, SIGNATURE_HEADER)).toBe("a, b");
    expect(readHeader(headers, TIMESTAMP_HEADER)).toBeUndefined();
  });

  it.each([["x-service-timestamp"], ["X-Service-Timestamp"], ["X-SERVICE-TIMESTAMP"]])(
    "reads a record's %s",
    (name) => {
      expect(readHeader({ host: "h", [name]: "1" }, TIMESTAMP_HEADER)).toBe("1");
    },
  );

  it("joins a record's list and names that differ only in case", () => {
    expect(readHeader({ "x-service-signature": ["a", "b"] }, SIGNATURE_HEADER)).toBe("a, b");
    expect(readHeader({ "X-Service-Signature": "a", "X-SERVICE-SIGNATURE": ["b", "c"] }, SIGNATURE_HEADER)).toBe(
      "a, b, c",
    );
  });

  it("keeps an empty value apart from an absent one", () => {
    expect(readHeader({ "x-service-signature": "" }, SIGNATURE_HEADER)).toBe("");
    expect(readHeader({ "x-service-signature": undefined }, SIGNATURE_HEADER)).toBeUndefined();
    expect(readHeader({ "x-service-signature": [] }, SIGNATURE_HEADER)).toBeUndefined();
    expect(readHeader({}, SIGNATURE_HEADER)).toBeUndefined();
  });

  it("leaves a spelling out that has no value", () => {
    expect(readHeader({ "X-Service-Signature": undefined }, SIGNATURE_HEADER)).toBeUndefined();
    expect(readHeader({ "X-Service-Signature": [], "X-SERVICE-SIGNATURE": "a" }, SIGNATURE_HEADER)).toBe("a");
  });

  it("looks for no other spelling where there is the one that node:http writes", () => {
    expect(readHeader({ "X-Service-Signature": "b", "x-service-signature": "a" }, SIGNATURE_HEADER)).toBe("a");
  });

  it("takes a record with a header called get for a record", () => {
    expect(readHeader({ get: "x", "x-service-signature": "a" }, SIGNATURE_HEADER)).toBe("a");
  });

  it("does not read inherited properties", () => {
    const headers: Record<string, string> = Object.create({ "x-service-signature": "a" });
    expect(readHeader(headers, SIGNATURE_HEADER)).toBeUndefined();
  });
});

describe("readTrace()", () => {
  const TRACE = "0af7651916cd43dd8448eb211c80319c";
  const PARENT = "b7ad6b7169203331";
  const valid = `00-${TRACE}-${PARENT}-01`;
  const read = (traceparent: string) => readTrace({ traceparent });

  it.each([
    ["as W3C shows it", valid],
    ["of a trace that is not sampled", `00-${TRACE}-${PARENT}-00`],
    ["with flags of a later version", `00-${TRACE}-${PARENT}-ff`],
    ["with ids of zeros but one", `00-${"0".repeat(31)}1-${"0".repeat(15)}1-01`],
    ["with ids that begin with zeros", `00-00${TRACE.slice(2)}-00${PARENT.slice(2)}-01`],
  ])("reads a header %s", (_what, header) => {
    expect(read(header)).toBe(header);
    expect(readTrace(new Headers({ traceparent: header }))).toBe(header);
  });

  it.each([
    ["is not there", undefined],
    ["is empty", ""],
    ["has a word before", `x${valid}`],
    ["has a line before", `secret\n${valid}`],
    ["has a word behind", `${valid}x`],
    ["has a line behind", `${valid}\nsecret`],
    ["has more fields, as a later version may", `${valid}-x`],
    ["has another version", valid.replace("00-", "01-")],
    ["has a trace of zeros", `00-${"0".repeat(32)}-${PARENT}-01`],
    ["has a parent of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["has a shorter trace", `00-${TRACE.slice(1)}-${PARENT}-01`],
    ["has a trace of one digit", `00-a-${PARENT}-01`],
    ["has a longer trace", `00-${TRACE}a-${PARENT}-01`],
    ["has a trace in upper case", `00-${TRACE.toUpperCase()}-${PARENT}-01`],
    ["has a trace of other letters", `00-${"g".repeat(32)}-${PARENT}-01`],
    ["has a shorter parent", `00-${TRACE}-${PARENT.slice(1)}-01`],
    ["has a parent of one digit", `00-${TRACE}-a-01`],
    ["has a longer parent", `00-${TRACE}-${PARENT}a-01`],
    ["has a parent in upper case", `00-${TRACE}-${PARENT.toUpperCase()}-01`],
    ["has a parent of other letters", `00-${TRACE}-${"g".repeat(16)}-01`],
    ["has no flags", `00-${TRACE}-${PARENT}-`],
    ["has one digit of flags", `00-${TRACE}-${PARENT}-1`],
    ["has three digits of flags", `00-${TRACE}-${PARENT}-011`],
    ["has flags of other letters", `00-${TRACE}-${PARENT}-gg`],
    ["came twice", `${valid}, ${valid}`],
  ])("reads none that %s", (_what, header) => {
    expect(readTrace({ traceparent: header })).toBeNull();
  });

  it("reads none of two headers", () => {
    expect(readTrace({ traceparent: [valid, valid] })).toBeNull();
  });

  it("reads no header of another name", () => {
    expect(readTrace({ tracestate: valid, "": valid })).toBeNull();
  });
});
