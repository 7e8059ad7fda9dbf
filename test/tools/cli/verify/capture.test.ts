/** The files that people have of a request. */
import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import { headerRecord, headersOf, requestOf } from "../../../../src/tools/cli/verify/capture.ts";

const PAIR = { "x-service-timestamp": ["1760000000"], "x-service-signature": ["ab=="] };

const HEAD = "X-Service-Timestamp: 1760000000\r\nX-Service-Signature: ab==  \r\n";
const CURL =
  "> X-Service-Timestamp: 1760000000\n> X-Service-Signature: ab==\n>\n< HTTP/1.1 401\n< X-Service-Signature: no\n";
const HTTP2 = ":method: POST\n:path: /\nx-service-timestamp: 1760000000\nx-service-signature: ab==";
const NAMED = Object.entries(PAIR).map(([name, [value]]) => ({ name, value }));

describe("headersOf()", () => {
  it.each([
    ["lines", "X-Service-Timestamp: 1760000000\nX-Service-Signature:ab==\n"],
    ["lines with CRLF, a byte order mark and an empty one", `\uFEFF\r\n${HEAD}\r\nbody: no header`],
    ["a request's head", `POST /hooks?a=b HTTP/1.1\r\n${HEAD}\r\n`],
    ["a folded line", "X-Service-Timestamp:\n  1760000000\nX-Service-Signature: ab=="],
    ["what curl -v printed", `*   Trying 127.0.0.1\n> POST / HTTP/1.1\n${CURL}`],
    ["HTTP/2", HTTP2],
    ["a JSON object", JSON.stringify({ "X-Service-Timestamp": 1760000000, "x-service-signature": "ab==" })],
    ["a JSON object of lists", JSON.stringify(PAIR)],
    ["an object's headers", JSON.stringify({ method: "POST", headers: PAIR })],
    ["pairs", JSON.stringify(Object.entries(PAIR))],
    ["rawHeaders", JSON.stringify(Object.entries(PAIR).flat(2))],
    ["HAR", JSON.stringify({ headers: NAMED })],
  ])("reads %s", (_, text) => {
    expect(headerRecord(headersOf(text))).toEqual(PAIR);
  });

  it("keeps what came twice", () => {
    expect(headerRecord(headersOf("A: 1\nB: 2\na: 3"))).toEqual({ a: ["1", "3"], b: ["2"] });
  });

  it.each([
    ["", /no header in it/],
    ["{}", /no header in it/],
    ["POST / HTTP/1.1\nsecret-looking text", /Line 2 is not a header/],
    ["a b: c", /Line 1 has a name that HTTP does not allow/],
    ["\u001b[31m: c", /Line 1 has a name/],
    ["{", /begins like JSON, but is not JSON/],
    ['[["a"]]', /no name, or a value that is not text/],
    ["[1]", /no name, or a value/],
  ])("refuses %j in one line that repeats nothing of it", (text, message) => {
    expect(() => headersOf(text)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }),
    );
    expect(() => headersOf(text)).not.toThrow(/looking|31m/);
  });
});

describe("a head that no server takes", () => {
  const blanks = `${" \t".repeat(100_000)}x`;
  it.each([
    ["blanks in a value", `A: x${blanks}`, /larger than 64 KiB/],
    ["continuation lines", `A: 1${"\n b".repeat(200_000)}`, /larger than 64 KiB/],
    ["headers of one name", "A: 1\n".repeat(201), /more than 200 headers/],
    ["JSON of a long value", JSON.stringify({ a: `x${blanks}` }), /larger than 64 KiB/],
    ["JSON of many values", JSON.stringify({ a: Array(100_000).fill("") }), /more than 200 headers/],
  ])("is refused at once: %s", (_, text, message) => {
    const startedAt = performance.now();
    expect(() => headersOf(text)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }),
    );
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it("is read up to there", () => {
    expect(headersOf("A: 1\n".repeat(200))).toHaveLength(200);
    expect(headersOf(`A: ${blanks.slice(0, 60_000)}\u00a0b \t`)).toEqual([["A", "\u00a0b"]]);
    const folded = headersOf(`A: 1\r\n${" b\t\r\n".repeat(15_000)}C: 2`);
    expect(headerRecord(folded)).toEqual({ a: [`1${" b".repeat(15_000)}`], c: ["2"] });
    expect(headersOf(`A: 1\n\n${"body\n".repeat(100_000)}`)).toEqual([["A", "1"]]);
  });
});

describe("requestOf()", () => {
  const body = Buffer.from([0x7b, 0xff, 0x0a, 0x0d, 0x0a, 0x0d, 0x0a, 0x7d]);
  const whole = (...lines: string[]) =>
    Buffer.concat([Buffer.from(`${["POST / HTTP/1.1", ...lines].join("\r\n")}\r\n\r\n`), body]);

  it("takes the body byte for byte", () => {
    expect(requestOf(whole("A: 1"))).toEqual({ headers: [["A", "1"]], body });
  });

  it("leaves out what stands behind Content-Length", () => {
    expect(requestOf(Buffer.concat([whole("Content-Length: 8"), Buffer.from("\n")])).body).toEqual(body);
  });

  it("takes the framing of chunks off", () => {
    const chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
    expect(requestOf(Buffer.from(chunked)).body.toString()).toBe("abc0123456789");
  });

  it.each(["3\r\nab", "x\r\nabc", "3\r\nabcd\r\n0\r\n\r\n", "3"])("keeps %j, which is not made of chunks", (text) => {
    const chunked = `POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${text}`;
    expect(requestOf(Buffer.from(chunked)).body.toString()).toBe(text);
  });

  it("takes a file without a body for one with an empty body", () => {
    expect(requestOf(Buffer.from("A: 1\n"))).toEqual({ headers: [["A", "1"]], body: Buffer.alloc(0) });
  });
});
