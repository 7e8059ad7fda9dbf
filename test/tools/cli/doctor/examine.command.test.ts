/** `oncehook doctor`, as a process and in this one: what it prints, and how it ends. */
import { describe, expect, it } from "vitest";
import { doctorCommand } from "../../../../src/tools/cli/doctor/command.ts";
import { rows } from "../../../setup/form.ts";
import { rowsOf, runHere } from "../here.ts";
import { newFile } from "../place.ts";
import { runToEnd } from "../running.ts";
import { newInbox, SECRET } from "./scene.ts";

const ENVIRONMENT = { ONCEHOOK_WEBHOOK_SECRET: SECRET };

const WAYS = [
  ["as a process", (args: readonly string[], environment = {}) => runToEnd(["doctor", ...args], environment)],
  ["here", (args: readonly string[], environment = {}) => runHere(doctorCommand(), args, environment)],
] as const;

describe.each(rows(WAYS, ([name]) => name === "here"))("oncehook doctor, %s", (_, run) => {
  it("ends with 3 for a problem, and says on a line each what is wrong and how it is mended", async () => {
    const { code, output, errors } = await run(["--store", "missing.db", "--secret-file", newFile("x")]);
    expect(code).toBe(3);
    expect(output).toContain("problem  There is no inbox at sqlite:");
    expect(output).toMatch(/\(no_inbox\)\n {9}fix: \w/);
    expect(output).toMatch(/skipped {2}The public address was not asked\. \(url\)\n {9}with --url/);
    expect(errors).toMatch(/\n2 problems, 0 warnings, 2 skipped\.\n$/);
  });

  it("ends with 0 where it finds no problem, and prints an object a line with --json", async () => {
    const store = await newInbox();
    const { code, output, errors } = await run(["--json"], { ...ENVIRONMENT, ONCEHOOK_STORE: store });
    expect([code, errors]).toEqual([0, ""]);
    const findings = rowsOf({ output });
    for (const finding of findings) {
      expect(Object.keys(finding)).toEqual(["code", "level", "what", "fix"]);
      expect(["ok", "warning", "skipped"]).toContain(finding.level);
    }
    expect(findings.map(({ code }) => code)).toContain("durability");
    expect(output).not.toContain(SECRET);
  });

  it("names flags with the word with, and says what to do as a fix", async () => {
    const path = await newInbox({ beat: { secret: `${SECRET}-other` } });
    const { output } = await run(["--store", path], ENVIRONMENT);
    expect(output).toMatch(/^skipped {2}The receivers hold another secret .+\(keyring\)\n {9}fix: Compare by hand/m);
    expect(output).toMatch(/\(url\)\n {9}with --url/);
    const leads = [...output.matchAll(/^ {9}(with|fix:) (\S+)/gm)];
    expect(leads.length).toBeGreaterThan(1);
    for (const [, lead, first = ""] of leads) expect(lead).toBe(first.startsWith("--") ? "with" : "fix:");
  });

  it("prints nothing of what is well with --quiet", async () => {
    expect(await run(["--quiet"], ENVIRONMENT)).toMatchObject({ code: 0, output: "", errors: "" });
  });

  it.each([
    [["--stor", "inbox.db"], /unknown option '--stor'\n\(Did you mean --store\?\)/],
    [["--store", "redis://localhost"], /--store takes a SQLite file or a postgres:\/\/ URL/],
    [["--store", "inbox.db", "--schema", "sms"], /--schema goes with a postgres:\/\/ address/],
    [["--base-url", "https://api.example.com"], /--base-url and --client-id go together/],
    [["--client-secret-file", "client.secret"], /--base-url and --client-id go together/],
  ])("ends with 2 for a mistake in the command line, and looks at nothing: %j", async (args, message) => {
    const { code, output, errors } = await run(args, ENVIRONMENT);
    expect([code, output]).toEqual([2, ""]);
    expect(errors).toMatch(message);
  });
});
