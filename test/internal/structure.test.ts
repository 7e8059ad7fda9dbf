import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_DEPTH, readJson } from "../../src/internal/json.ts";
import { sized } from "../setup/form.ts";
import { bodies, bytes } from "../sources/messaging/examples.ts";

const codeOf = (text: string | Uint8Array) => {
  const result = readJson(typeof text === "string" ? bytes(text) : text);
  return result.ok ? "ok" : result.code;
};
const arrays = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
/** The same key with every character as an escape. */
const escaped = (key: string) =>
  [...key].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

describe("readJson() depth", () => {
  it.each([1, 2, 63, MAX_DEPTH])("reads %i levels", (depth) => {
    expect(codeOf(arrays(depth))).toBe("ok");
    expect(codeOf(objects(depth))).toBe("ok");
    expect(codeOf(`${'[{"a":'.repeat(depth / 2)}1${"}]".repeat(depth / 2)}`)).toBe("ok");
  });

  it.each([MAX_DEPTH + 1, 100, 1_000, 10_000, 100_000, 1_000_000])("refuses %i levels", (depth) => {
    expect(codeOf(arrays(depth))).toBe("too_deep");
    expect(codeOf(objects(depth))).toBe("too_deep");
    expect(codeOf("[".repeat(depth))).toBe("too_deep");
    expect(codeOf('{"a":'.repeat(depth))).toBe("too_deep");
  });

  it("counts no bracket inside a string", () => {
    expect(codeOf(JSON.stringify(["[{".repeat(1_000), '"[{\\'.repeat(1_000), "\\"]))).toBe("ok");
  });

  it.each(["[ ", "[0,", "[\n", '{"a": ', "[[],"])("counts a level for each %j, whatever stands between", (level) => {
    expect(codeOf(level.repeat(MAX_DEPTH + 1))).toBe("too_deep");
  });

  it("counts nesting, not brackets", () => {
    expect(codeOf(`[${Array(10_000).fill("[],{}").join(",")}]`)).toBe("ok");
  });
});

describe("readJson() keys", () => {
  it.each([
    ...['{"a":1,"a":1}', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"\\u0061":1,"\\u0061":2}', '{"a":1,"b":2,"a":3}'],
    ...['{"":1,"":2}', '{"1":1,"1":2}', '{"a\\/":1,"a/":2}', '{"\\n":1,"\\u000a":2}', '{"\\"":1,"\\u0022":2}'],
    ...['{"\\\\":1,"\\u005c":2}', '{"\\ud83d\\ude00":1,"😀":2}', '{"é":1,"\\u00e9":2}', '[{"a":1},{"a":1,"a":1}]'],
    ...['{"a":{"a":{"a":1,"a":1}}}', '{"a":{"a":1},"a":{"a":1}}', '{"constructor":1,"constructor":2}'],
  ])("refuses the duplicate key of %s", (text) => {
    expect(codeOf(text)).toBe("duplicate_key");
  });

  it("refuses a duplicate, plain or escaped, of every key of every example", () => {
    let tried = 0;
    for (const body of Object.values(bodies)) {
      for (const [, key] of body.matchAll(/"(\w+)":/g)) {
        if (key === undefined) continue;
        for (const twin of [key, escaped(key), escaped(key[0] ?? "") + key.slice(1)]) {
          expect(codeOf(body.replace(`"${key}":`, `"${twin}":0,"${key}":`))).toBe("duplicate_key");
          tried++;
        }
      }
    }
    expect(tried).toBeGreaterThan(150);
  });

  it.each([
    ...['{"__proto__":1}', '{"__proto__":{"admin":true}}', '{"\\u005f_proto__":null}'],
    ...['{"a":[{"b":{"__proto__":[]}}]}', '{"__proto__":1,"__proto__":2}'],
  ])("refuses %s", (text) => {
    expect(codeOf(text)).toBe("forbidden_key");
    expect(Object.prototype).not.toHaveProperty("admin");
  });

  it.each(["constructor", "prototype", "toString", "hasOwnProperty", "__defineGetter__", "_proto_", "length"])(
    "keeps a key %s",
    (key) => {
      expect(readJson(bytes(`{"${key}":{"${key}":1}}`))).toEqual({ ok: true, value: { [key]: { [key]: 1 } } });
    },
  );

  it("counts a key that another library put on every object's prototype as none", () => {
    const extended = { value: 1, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(Object.prototype, "polluted", extended);
    let codes: string[] = [];
    try {
      codes = [codeOf('{"a":{"b":1}}'), codeOf('{"a":{"b":1,"b":1}}')];
    } finally {
      Reflect.deleteProperty(Object.prototype, "polluted");
    }
    expect(codes).toEqual(["ok", "duplicate_key"]);
  });

  it("reads colons, quotes and backslashes in strings as text", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...'\\":{}[],a😀\u2028é'.split("")), { maxLength: 40 }), (chars) => {
        const value = { [`k${chars.join("")}`]: chars.join(""), list: [chars.join(""), { [chars.join("")]: chars }] };
        const text = JSON.stringify(value);
        expect(readJson(bytes(text))).toEqual({ ok: true, value: JSON.parse(text) });
      }),
      { numRuns: sized({ quick: 300, full: 2_000 }) },
    );
  });

  it("reads any JSON value that has no such key, as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        fc.pre(!text.includes("__proto__"));
        expect(readJson(bytes(text))).toEqual({ ok: true, value: JSON.parse(text) });
      }),
      { numRuns: sized({ quick: 300, full: 2_000 }) },
    );
  });
});

describe("readJson() bytes", () => {
  const inString = (...middle: number[]) => Buffer.from([0x22, ...middle, 0x22]);

  it.each([
    ["a lone continuation byte", [0x80]],
    ["a truncated 2-byte form", [0xc3]],
    ["a truncated 3-byte form", [0xe2, 0x82]],
    ["a truncated 4-byte form", [0xf0, 0x9f, 0x98]],
    ["an overlong 2-byte form", [0xc0, 0xaf]],
    ["an overlong 3-byte form", [0xe0, 0x80, 0xaf]],
    ["an overlong 4-byte form", [0xf0, 0x80, 0x80, 0xaf]],
    ["an overlong NUL", [0xc0, 0x80]],
    ["an encoded high surrogate", [0xed, 0xa0, 0x80]],
    ["an encoded surrogate pair", [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
    ["a code point above U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a 5-byte form", [0xf8, 0x88, 0x80, 0x80, 0x80]],
    ["the byte FE", [0xfe]],
    ["the byte FF", [0xff]],
    ["Latin-1", [0x63, 0x61, 0x66, 0xe9]],
  ])("refuses %s", (_name, middle) => {
    expect(codeOf(inString(...middle))).toBe("invalid_utf8");
  });

  it("agrees with a fatal TextDecoder on all 2-byte and many longer forms", () => {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    const valid = (body: Uint8Array) => {
      try {
        return decoder.decode(body) !== undefined;
      } catch {
        return false;
      }
    };
    const high = [0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5];
    const forms: number[][] = [];
    for (let first = 0; first < 256; first++) {
      for (let second = 0; second < 256; second++) forms.push([first, second]);
      for (const second of high) for (const third of high) forms.push([first, second, third]);
    }
    const disagreed = forms.filter(
      (form) => (codeOf(inString(...form)) !== "invalid_utf8") !== valid(inString(...form)),
    );
    expect(disagreed).toEqual([]);
  });

  it("reads every Unicode scalar value at the edges", () => {
    const edges = [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfeff, 0xffff, 0x10000, 0x10ffff];
    const text = edges.map((code) => String.fromCodePoint(code)).join("");
    expect(readJson(bytes(JSON.stringify(text)))).toEqual({ ok: true, value: text });
  });

  it("refuses a byte order mark, also before nothing, and UTF-16", () => {
    expect(codeOf(Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]))).toBe("byte_order_mark");
    expect(codeOf(Buffer.from([0xef, 0xbb, 0xbf]))).toBe("byte_order_mark");
    expect(codeOf(Buffer.from('{"a":1}', "utf16le"))).toBe("invalid_json");
    expect(codeOf(Buffer.from('\ufeff{"a":1}', "utf16le"))).toBe("invalid_utf8");
  });

  it("reads a view into a larger buffer, and any Uint8Array", () => {
    const whole = bytes('xx{"a":1}yy');
    expect(readJson(whole.subarray(2, 9))).toEqual({ ok: true, value: { a: 1 } });
    expect(readJson(new Uint8Array(whole.buffer, whole.byteOffset + 2, 7))).toEqual({ ok: true, value: { a: 1 } });
    expect(readJson(new Uint8Array(bytes('{"a":1}')))).toEqual({ ok: true, value: { a: 1 } });
  });

  it("refuses a detached buffer", () => {
    const body = new Uint8Array([0x7b, 0x7d]);
    structuredClone(body.buffer, { transfer: [body.buffer] });
    expect(readJson(body).ok).toBe(false);
  });
});

describe("readJson() text", () => {
  it.each([
    ...["", " ", "\0", "{", "}", "[", '"', '"\\', '{"a"', '{"a":', '{"a":1', '{"a":1}}', "{}{}", "{} x", "{}\0"],
    ...["[1,]", '{"a":1,}', "{,}", "{'a':1}", "{a:1}", "// x\n{}", "NaN", "Infinity", "-", "01", "1.", ".5", "+1"],
    ...["0x10", "1e", '"\n"', '"\\x41"', '"\\u12"', "tru", "undefined", "]]]]", "[}", '{"a":1:2}', "\u00a0{}"],
  ])("refuses %j", (text) => {
    expect(codeOf(text)).toBe("invalid_json");
  });

  it.each([
    ["1e400", Number.POSITIVE_INFINITY],
    ["-1e400", Number.NEGATIVE_INFINITY],
    ["1e-400", 0],
    ["-0", -0],
    [`1${"0".repeat(400)}`, Number.POSITIVE_INFINITY],
    ["9007199254740993", 9007199254740992],
  ])("reads the number %s as JavaScript does", (text, value) => {
    expect(readJson(bytes(`[${text}]`))).toEqual({ ok: true, value: [value] });
  });
});
