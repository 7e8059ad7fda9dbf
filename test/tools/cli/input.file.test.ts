/** How much commands read of a file, and what they take for text. */
import { tmpdir } from "node:os";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { bytesOfFile, bytesOfStream, textOfBytes } from "../../../src/tools/cli/input.ts";
import { newFile } from "./place.ts";

const READING = { name: "it", mostBytes: 1024 };
const TOO_LARGE = expect.objectContaining({ exitCode: 2, message: "Cannot read it: it is larger than 1 KiB." });

describe("bytesOfFile()", () => {
  it.each([0, 1, 1023, 1024])("reads a file of %i bytes", (length) => {
    const content = Buffer.alloc(length, "ab");
    expect(bytesOfFile(newFile(content), READING).equals(content)).toBe(true);
  });

  it("refuses a file of a byte too many", () => {
    expect(() => bytesOfFile(newFile(Buffer.alloc(1025)), READING)).toThrow(TOO_LARGE);
  });

  it.skipIf(process.platform === "win32")("refuses what has no end", () => {
    expect(() => bytesOfFile("/dev/zero", READING)).toThrow(TOO_LARGE);
  });

  it.each([
    ["/nowhere/file", "ENOENT"],
    [tmpdir(), "EISDIR"],
  ])("says why it cannot read %s", (file, code) => {
    const failure = { exitCode: 1, message: `Cannot read it: ${code}.` };
    expect(() => bytesOfFile(file, READING)).toThrow(expect.objectContaining(failure));
  });
});

describe("bytesOfStream()", () => {
  it("reads what is allowed, and ends a stream that has more", async () => {
    const chunk = Buffer.alloc(512, "a");
    expect((await bytesOfStream(Readable.from([chunk, chunk]), READING)).length).toBe(1024);
    const endless = Readable.from(
      (function* () {
        for (;;) yield chunk;
      })(),
    );
    await expect(bytesOfStream(endless, READING)).rejects.toThrow(TOO_LARGE);
    expect(endless.destroyed).toBe(true);
  });
});

describe("textOfBytes()", () => {
  it.each(["", "Grüße 👋\r\n", "\uFEFFs3cret", "\uFFFD"])("keeps %j as it is", (text) => {
    expect(textOfBytes(Buffer.from(text))).toBe(text);
  });

  it.each(["ff", "fe", "c3", "eda080", "61c328"])("takes no bytes %s for text", (hex) => {
    expect(textOfBytes(Buffer.from(hex, "hex"))).toBeNull();
  });
});
