/** The parts of `oncehook inbox` that need no inbox: flags, questions, errors in words, and help. */
import { readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { type OncehookError, SetupError, StoreError } from "../../../../src/errors.ts";
import { endingOf } from "../../../../src/tools/cli/exit.ts";
import { inWords } from "../../../../src/tools/cli/flags.ts";
import { rate, summaryText } from "../../../../src/tools/cli/inbox/acts.ts";
import { inboxCommand } from "../../../../src/tools/cli/inbox/command.ts";
import { addFilterFlags, type FilterFlags, filterOf } from "../../../../src/tools/cli/inbox/filters.ts";
import { checkAskable, confirm, printable } from "../../../../src/tools/cli/terminal.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { SCHEMAS } from "../inbox-schemas.ts";

describe("filterOf()", () => {
  const read = (args: readonly string[]) => {
    const command = new Command("ls").exitOverride().configureOutput({ writeErr: () => {} });
    return filterOf(addFilterFlags(command, ["dead", "late"]).parse(args, { from: "user" }).opts<FilterFlags>());
  };

  it("gives each flag its filter, and none where there is no flag", () => {
    expect(read([])).toEqual({});
    const texts = "--type t --source s --tenant c --lane l --id i --reference r --number n --error e".split(" ");
    const flags = "--state dead --state late --outcome unhandled --late --conflict".split(" ");
    expect(read([...flags, ...texts])).toEqual({
      ...{ states: ["dead", "late"], outcome: "unhandled", late: true, conflict: true },
      ...{
        eventType: "t",
        source: "s",
        tenant: "c",
        lane: "l",
        id: "i",
        externalReference: "r",
        peer: "n",
        errorCode: "e",
      },
    });
  });

  it("takes the outcome of filtered events, ages and instants", () => {
    expect(read(["--outcome", "filtered"])).toEqual({ outcome: "filtered" });
    expect(read(["--since", "2026-01-01T00:00:00Z"])).toEqual({ acceptedFrom: 1_767_225_600_000 });
    const { acceptedFrom = 0, acceptedTo = 0 } = read(["--since", "2h", "--older-than", "90m"]);
    expect(acceptedTo - acceptedFrom).toBeGreaterThanOrEqual(30 * 60_000);
    expect(acceptedTo - acceptedFrom).toBeLessThan(31 * 60_000);
    expect(() => read(["--since", "yesterday"])).toThrow(
      /Write how long ago, such as 2h or 7d, or a time such as 2026/,
    );
  });
});

describe("rate()", () => {
  it.each([
    ["50/s", 50],
    ["600/m", 10],
    ["0.5", 0.5],
  ])("reads %s", (text, perSecond) => {
    expect(rate(text)).toBe(perSecond);
  });

  it.each(["0/s", "50/h", "fast", "1000000/s", ""])("refuses %j", (text) => {
    expect(() => rate(text)).toThrow("50/s");
  });
});

describe("printable()", () => {
  it("writes out what a terminal would obey", () => {
    expect(printable("a\u001b[2J\r\n\u202eb é…")).toBe("a\\u001b[2J\\u000d\\u000a\\u202eb é…");
  });
});

describe("confirm()", () => {
  const terminal = (answer: string, isTTY = true) => {
    const input = Object.assign(new PassThrough(), { isTTY });
    input.end(answer);
    return { input, output: new PassThrough() };
  };

  it.each(["y\n", "YES\n"])("goes on after %j", async (answer) => {
    await expect(confirm("Go on?", {}, terminal(answer))).resolves.toBeUndefined();
  });

  it.each(["n\n", "\n", ""])("does nothing after %j, and ends with 3", async (answer) => {
    const error = await failureOf(confirm("Go on?", {}, terminal(answer)));
    expect(error).toMatchObject({ message: "Nothing was done.", exitCode: 3 });
  });

  it("asks nobody with --yes, and wants it where nobody can answer", async () => {
    await expect(confirm("Go on?", { yes: true }, terminal("", false))).resolves.toBeUndefined();
    expect(() => checkAskable({}, terminal("", false))).toThrow("add --yes");
    expect(() => checkAskable({}, terminal(""))).not.toThrow();
  });
});

describe("summaryText()", () => {
  it("tells what was done, and why the rest was not", () => {
    expect(summaryText("replay", { replayed: 4_000, superseded: 1_000, wrong_state: 0 }, false)).toBe(
      "Replayed 4,000 events. Left as they are: 1,000 superseded.",
    );
    expect(summaryText("replay", { replayed: 1 }, true)).toBe("Would replay 1 event.");
  });
});

describe("inWords()", () => {
  const unavailable = (fields: Record<string, string | null>) =>
    new StoreError("store_unavailable", "Not now.", { fields });

  it.each<[OncehookError, string]>([
    [new SetupError("migration_needed", "", { fields: { schema: 1, newest: 3 } }), 'run "oncehook inbox migrate"'],
    [new SetupError("copy_unfinished", ""), '"oncehook inbox copy" again'],
    [new SetupError("inbox_too_new", "Upgrade oncehook."), "Upgrade oncehook."],
    [unavailable({ sqliteCode: "SQLITE_IOERR" }), "Not now."],
    [unavailable({ sqlState: "28P01" }), "the password"],
    [unavailable({ sqlState: "42501" }), "Not now."],
    [unavailable({ sqlState: null }), "the server runs"],
  ])("tells %# with the fix, and ends with 1", (error, fix) => {
    expect(inWords(error)).toMatchObject({ message: expect.stringContaining(fix), exitCode: 1, cause: error });
  });

  it("names options as the command line does", () => {
    const invalid = (fields: Record<string, string>) => inWords(new SetupError("invalid_option", "Which?", { fields }));
    expect(invalid({ option: "peer" })).toMatchObject({ message: expect.stringMatching(/^--number /), exitCode: 2 });
    expect(invalid({ option: "database", encoding: "LATIN1" })).toMatchObject({ message: "Which?" });
  });

  it("leaves mistakes of the command line and strange errors to the program", () => {
    for (const error of [new SetupError("no_inbox", "Where?"), new Error("boom")]) expect(inWords(error)).toBe(error);
  });
});

describe("oncehook inbox", () => {
  it.each([
    [["show"], "the number of an event, or --lane, or --id"],
    [["show", "1", "--id", "msg_1"], "the number of an event, or --lane, or --id"],
    [["show", "1", "--tenant", "apc_1"], "--source and --tenant go with --lane or --id"],
    [["ls", "--group-by", "error", "--state", "done"], "leave --state out"],
    [["replay"], "Say which events to replay"],
    [["replay", "1", "--all"], "in one way which events"],
    [["discard", "1", "--rate", "5/s"], "--rate goes with filters"],
    [["unblock", "1", "--all"], "in one way what to unblock"],
    [["release", "1", "--tenant", "apc_1"], "--source and --tenant do not go with numbers of lanes"],
    [["export"], "--number NUMBER or --id ID"],
    [["erase", "--number", "+15550100002", "--id", "msg_1"], "--number NUMBER or --id ID"],
    [["stats", "--store", "postgres://["], "not one of Postgres"],
    [["stats", "--store", "https://example.org"], "a SQLite file or a postgres:// URL"],
  ])("calls %j a mistake before it opens anything", async (args, says) => {
    const error = await failureOf(inboxCommand().parseAsync(args, { from: "user" }));
    expect(endingOf(error)).toEqual({ text: expect.stringContaining(says), exitCode: 2 });
  });
});

describe("the help of oncehook inbox", () => {
  const helpOf = (command: Command) => {
    let text = "";
    command.configureOutput({ getOutHelpWidth: () => 120, writeOut: (part) => (text += part) }).outputHelp();
    return text;
  };
  const allOf = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(allOf)];

  it("is as it was", () => {
    expect(allOf(inboxCommand()).map(helpOf).join("\n")).toMatchSnapshot();
  });
});

describe("docs/cli.md", () => {
  it("names every field that --json prints", () => {
    const text = readFileSync(new URL("../../../../docs/cli.md", import.meta.url), "utf8");
    const fields = Object.values(SCHEMAS).flatMap((schema) => Object.keys(schema.shape));
    expect(fields.length).toBeGreaterThan(100);
    expect(fields.filter((field) => !text.includes(`\`${field}\``))).toEqual([]);
  });
});
