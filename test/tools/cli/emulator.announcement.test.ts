/** What is printed once the emulator listens. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { announcementHints, announcementLine, announcementText } from "../../../src/tools/cli/emulator.ts";
import { start } from "../../messaging/emulator/support.ts";

describe("announcementLine()", () => {
  it("is one line whatever is in it", async () => {
    const emulator = await start({ clientSecret: "two\nlines" });
    const line = announcementLine(emulator);
    expect(line.indexOf("\n")).toBe(line.length - 1);
    const { url, apiClientId, clientId, webhookSecret, fixtures } = emulator;
    expect(announcementLine({ ...emulator, clientSecret: "a\u202eb" })).toContain('"a\\u202eb"');
    const told = { url, apiClientId, clientId, clientSecret: "two\nlines", webhookSecret, fixtures };
    expect(JSON.parse(line)).toEqual(told);
  });
});

describe("announcementHints()", () => {
  it.each(["plain", "with space", "it's", '"$HOME"', "`id`", "a;b|c&d", "*?[]", "~", "\\", "#x", "grüße"])(
    "shows a command that gives the secret %s as one word",
    async (clientSecret) => {
      const text = announcementHints(await start({ clientSecret }));
      const [, command = ""] = /Try:\n([\s\S]*?)\n\n/.exec(text) ?? [];
      const words = execFileSync("sh", ["-c", command.replace(/^ *curl/, "printf '%s\\n'")], { encoding: "utf8" });
      expect(words.trimEnd().split("\n").slice(-3)).toEqual([
        "client_id=client_main",
        "--data-urlencode",
        `client_secret=${clientSecret}`,
      ]);
    },
  );
});

describe("announcementText()", () => {
  it("names every number by what it is for", async () => {
    const emulator = await start();
    const text = announcementText(emulator);
    for (const [name, id] of Object.entries(emulator.fixtures.numbers))
      expect(text).toMatch(new RegExp(`${name} +${id}\n`));
  });
});
