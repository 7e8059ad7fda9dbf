/** Where commands take their secrets from. */
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { givenSecret, neededSecret, WEBHOOK_SECRET } from "../../../src/tools/cli/input.ts";
import { Terminal } from "../../../src/tools/cli/terminal.ts";
import { newFile } from "./place.ts";

class Notes extends Terminal {
  readonly notes: string[] = [];
  override note(text: string): void {
    this.notes.push(text);
  }
}

function withEnvironment(value: string | undefined): void {
  vi.stubEnv(WEBHOOK_SECRET.environment, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

describe("givenSecret()", () => {
  it.each([
    ["s3cret", "s3cret", 0],
    ["s3cret\n", "s3cret", 1],
    ["s3cret\r\n", "s3cret", 1],
    ["s3cret\n\n", "s3cret\n", 1],
    [" s3cret ", " s3cret ", 0],
  ])("reads a file with %j, without one line break at its end, and says so", (text, secret, notes) => {
    const terminal = new Notes({});
    expect(givenSecret(WEBHOOK_SECRET, newFile(text), terminal)).toBe(secret);
    expect(terminal.notes).toHaveLength(notes);
    expect(terminal.notes.join()).not.toContain("s3cret");
  });

  it.each(["", "\n"])("refuses a file with %j", (text) => {
    expect(() => givenSecret(WEBHOOK_SECRET, newFile(text), new Notes({}))).toThrow("is empty");
  });

  it("refuses bytes that are no text: two such secrets would be read as one", () => {
    const expected = {
      exitCode: 2,
      message: expect.stringMatching(/--secret-file, .*, is not UTF-8 text: make one with/),
    };
    for (const byte of [0xfe, 0xff]) {
      const file = newFile(Buffer.alloc(32, byte));
      expect(() => givenSecret(WEBHOOK_SECRET, file, new Notes({}))).toThrow(expect.objectContaining(expected));
    }
  });

  it("takes the file before the environment, the environment else, and neither where there is none", () => {
    withEnvironment("of the environment");
    expect(givenSecret(WEBHOOK_SECRET, newFile("of the file"), new Notes({}))).toBe("of the file");
    expect(givenSecret(WEBHOOK_SECRET, undefined, new Notes({}))).toBe("of the environment");
    vi.stubEnv(WEBHOOK_SECRET.environment, undefined);
    expect(givenSecret(WEBHOOK_SECRET, undefined, new Notes({}))).toBeUndefined();
    vi.stubEnv(WEBHOOK_SECRET.environment, "");
    expect(() => givenSecret(WEBHOOK_SECRET, undefined, new Notes({}))).toThrow("is empty");
  });
});

describe("neededSecret()", () => {
  it("says where to put it when nobody is there to be asked", async () => {
    withEnvironment(undefined);
    const needed = neededSecret(WEBHOOK_SECRET, undefined, new Notes({}));
    await expect(needed).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining("--secret-file FILE") });
  });

  /** What becomes of it when somebody types this at a terminal, and what the terminal shows. */
  async function typing(text: string) {
    withEnvironment(undefined);
    const keyboard = Object.assign(new PassThrough(), { isTTY: true });
    const input = vi.spyOn(process, "stdin", "get").mockReturnValue(keyboard as never);
    const shown: unknown[] = [];
    const output = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => shown.push(chunk) > 0);
    onTestFinished(() => {
      input.mockRestore();
      output.mockRestore();
    });
    const needed = neededSecret(WEBHOOK_SECRET, undefined, new Notes({}));
    keyboard.write(text);
    return { needed, shown };
  }

  it("asks on a terminal, which shows nothing of it", async () => {
    const { needed, shown } = await typing("s3cret\r");
    expect(await needed).toBe("s3cret");
    expect(shown).toEqual(["Type the webhook signing secret: ", "\n"]);
  });

  it("takes no secret that is empty", async () => {
    const { needed } = await typing("\r");
    await expect(needed).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining("--secret-file FILE") });
  });
});
