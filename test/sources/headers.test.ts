import { describe, expect, it } from "vitest";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../src/service/sign.ts";
import { readHeader } from "../../src/sources/headers.ts";

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
