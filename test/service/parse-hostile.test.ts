/** What a holder of a secret, or a careless caller, could hand to the parser. */
import { describe, expect, it } from "vitest";
import { parseEvent } from "../../src/service/parse.ts";
import { bodies, bytes, inboundBody, sentBody } from "./examples.ts";

type Fields = Record<string, unknown>;

const codeOf = (input: unknown) => {
  const result = parseEvent(input);
  return result.ok ? "ok" : result.code;
};
const issuesOf = (input: unknown) => {
  const result = parseEvent(input);
  return result.ok ? "ok" : result.issues;
};

describe("parseEvent() on other values", () => {
  it.each(["null", "true", "1", '"x"', "[]", "[{}]", "-0", "1e400"])("refuses %s: no object", (text) => {
    const failure = { ok: false, code: "not_an_object" };
    const issue = text === '"x"' ? "expected the body's bytes, or an object; this is text" : "expected an object";
    expect(parseEvent(bytes(text))).toEqual({ ...failure, issues: [issue] });
  });

  it("passes on why bytes are no JSON", () => {
    expect(parseEvent(bytes(`\ufeff${sentBody}`))).toEqual({ ok: false, code: "byte_order_mark", issues: [] });
    expect(codeOf(bytes(`${sentBody}x`))).toBe("invalid_json");
    expect(codeOf(bytes(""))).toBe("invalid_json");
    expect(codeOf(Buffer.concat([bytes('{"eventType":"x'), Buffer.from([0xff]), bytes('"}')]))).toBe("invalid_utf8");
    expect(codeOf(bytes(sentBody.replace("{", '{"\\u0073equence":9,')))).toBe("duplicate_key");
    expect(codeOf(bytes(sentBody.replace("{", '{"__proto__":9,')))).toBe("forbidden_key");
    expect(codeOf(bytes(sentBody.replace("{", `{"x":${"[".repeat(64)}${"]".repeat(64)},`)))).toBe("too_deep");
  });

  it("reads an object that was parsed before, and shares nothing with it", () => {
    const value = JSON.parse(inboundBody);
    const result = parseEvent(value);
    expect(result).toEqual({ ok: true, event: value });
    value.data.media.push("later");
    expect(result).toEqual({ ok: true, event: JSON.parse(inboundBody) });
  });

  it("tells a caller who passes text that it wants bytes", () => {
    expect(issuesOf(sentBody)).toEqual(["expected the body's bytes, or an object; this is text"]);
  });

  it("never throws, whatever it is given", () => {
    const cycle: Fields = { eventType: "x" };
    cycle.self = cycle;
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const throwing = new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail });
    const odd = [
      undefined,
      null,
      0,
      1n,
      Symbol("x"),
      () => 1,
      Number.NaN,
      new Date(Number.NaN),
      new Map(),
      cycle,
      deep,
    ];
    const getter = {
      get eventType() {
        return fail();
      },
    };
    for (const value of [...odd, throwing, getter, { toJSON: fail }, { eventType: "x", n: 1n }, new ArrayBuffer(2)]) {
      expect(parseEvent(value).ok).toBe(false);
    }
  });

  it("says that a value which JSON cannot write is none", () => {
    const cycle: Fields = { eventType: "x" };
    cycle.self = cycle;
    for (const value of [undefined, fail, Symbol("x"), 1n, cycle, { toJSON: fail }]) {
      expect(parseEvent(value)).toEqual({ ok: false, code: "invalid_json", issues: [] });
    }
  });

  it("refuses a __proto__ key that another parser let through", () => {
    expect(codeOf(JSON.parse('{"eventType":"x","__proto__":{"admin":true}}'))).toBe("forbidden_key");
  });
});

function fail(): never {
  throw new Error("touched");
}
