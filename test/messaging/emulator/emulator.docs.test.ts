/** Holds docs/emulator.md to the sources, runs its test, and its transcript in one shell against the command. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { examplesOf } from "../../../scripts/docs/blocks.ts";
import { withTables } from "../../../scripts/docs/emulator-tables.ts";
import {
  API_ACTIONS,
  faultRuleSchema,
  UNKNOWN_EVENT_TYPE,
  WEBHOOK_ACTIONS,
} from "../../../src/messaging/emulator/faults.ts";
import { READINGS } from "../../../src/messaging/emulator/index.ts";
import { PROFILE_NAMES } from "../../../src/messaging/emulator/options.ts";
import { INVENTORY } from "../../../src/messaging/emulator/routes/numbers.ts";
import { FLAGS, flagOf } from "../../../src/tools/cli/emulator-options.ts";
import { Running, runs } from "../../tools/cli/running.ts";
import { start } from "./support.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const guide = readFileSync(join(ROOT, "docs/emulator.md"), "utf8");

describe("docs/emulator.md", () => {
  it("has the tables of the sources; node scripts/run.mjs scripts/emulator-guide.ts writes them", () => {
    expect(withTables(guide)).toBe(guide);
    for (const name of Object.keys(READINGS)) expect(guide).toContain(`| \`${name}\` |`);
  });

  it("and the rules name no option that is not built", () => {
    const rules = readFileSync(join(ROOT, "docs/spec/conformance.md"), "utf8");
    const named = [...rules.matchAll(/ \| (?:fault )?`([\w.]+)/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(15);
    const built = new Set<unknown>([...Object.keys(READINGS), ...WEBHOOK_ACTIONS.keys()]);
    expect(named.filter((name) => !built.has(name))).toEqual([]);
  });

  it("sees a table that is not up to date, has no name that is known, or no place", () => {
    expect(withTables(guide.replace("| `retrySignature` |", "| `signatureOfRetries` |"))).toBe(guide);
    expect(() => withTables(guide.replace("table: magic", "table: magical"))).toThrow(/no table "magical"/);
    expect(() => withTables(guide.replace("<!-- table: magic -->", ""))).toThrow(/no place for the table magic/);
  });

  it("shows a rule for each action of a fault, which the emulator takes", async () => {
    const rules = [...guide.matchAll(/`(\{"match".*\})`/g)].map(([, rule = ""]) => JSON.parse(rule));
    const shown = (isForCalls: boolean) =>
      new Set(rules.filter(({ match }) => "route" in match === isForCalls).map(({ action }) => action.type));
    expect([shown(true), shown(false)]).toEqual([new Set(API_ACTIONS.keys()), new Set(WEBHOOK_ACTIONS.keys())]);
    expect(guide).toContain(`\`${UNKNOWN_EVENT_TYPE}\``);
    const emulator = await start({ faults: rules });
    expect(emulator.control.faults.list().map(({ rule }) => rule)).toEqual(
      rules.map((rule) => faultRuleSchema.parse(rule)),
    );
  });

  it("names all profiles and fixtures, and no flag or variable that does not exist", async () => {
    const { fixtures } = await start();
    for (const name of [...PROFILE_NAMES, ...Object.keys(fixtures.numbers)]) expect(guide).toContain(`\`${name}\``);
    const flags = Object.keys(FLAGS).map(flagOf);
    const prose = guide.replace(/^```sh\n[\s\S]*?^```$/gm, "").replace(/<!--.*?-->/g, "");
    const named = [...prose.matchAll(/(?<![\w-])--[a-z][a-z-]+/g)].map(([flag]) => flag);
    expect(named.length).toBeGreaterThan(10);
    expect(
      named.filter((flag) => ![...flags, "--json", "--quiet", "--debug", "--exec", "--help"].includes(flag)),
    ).toEqual([]);
    const variables = Object.values(FLAGS).flatMap(({ environment = [] }) => environment);
    expect([...new Set(guide.match(/ONCEHOOK_\w+/g))].sort()).toEqual(variables.sort());
  });

  it.skipIf(spawnSync("curl", ["--version"]).error !== undefined)("shows a control call that works", async () => {
    const emulator = await start({ port: 0 });
    const [, command = ""] = /^```sh\n(curl [^`]*\/_emulator\/inbound[^`]*)^```$/m.exec(guide) ?? [];
    const { stdout } = await run("sh", ["-c", command.replace("http://127.0.0.1:4010", emulator.url)]);
    expect(JSON.parse(stdout)).toMatchObject({ message: { direction: "inbound", text: "hello" } });
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("counts what a search finds", () => {
    expect(guide).toContain(`the same ${INVENTORY.length} numbers`);
  });

  it("has a test that passes as it stands", { tags: "full", timeout: 120_000 }, async () => {
    const test = examplesOf("docs/emulator.md", guide).find(({ code }) => code.includes('from "vitest"'));
    // Inside the project, so that "oncehook" and "vitest" are found.
    mkdirSync(join(ROOT, ".build"), { recursive: true });
    const folder = mkdtempSync(join(ROOT, ".build/guide-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, "guide.test.ts"), test?.code ?? "");
    writeFileSync(join(folder, "vitest.config.js"), "export default {};\n");
    const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
    const { PATH, HOME } = process.env;
    const { stdout } = await run(process.execPath, [vitest, "run", "--root", folder], {
      env: { PATH, HOME, NO_COLOR: "1" },
      timeout: 110_000,
    });
    expect(stdout).toMatch(/Tests\s+1 passed \(1\)/);
    // A second vitest takes seconds to start, and many of them where others want the processors too.
  });
});

const [, transcript = ""] = /^## With curl alone\n([\s\S]*?)(?=^## )/m.exec(guide) ?? [];
const blocks = [...transcript.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
const BETWEEN = "-- next block --";

const missing = ["curl", "openssl"].filter((tool) => spawnSync(tool, ["--version"]).error !== undefined);
if (missing.length > 0) console.log(`skipped: the transcript with curl alone needs ${missing.join(" and ")}`);

describe.skipIf(missing.length > 0)("the transcript with curl alone", () => {
  it("ends with a webhook whose signature openssl makes as well (TOK-3, WHO-1, NUM-1, WHK-11, SND-9, DLV-4, DLV-5)", async () => {
    const running = new Running(["emulator", "--json", "--port=0"], { ONCEHOOK_CLIENT_SECRET: "example" });
    const { url } = await running.announced();
    expect(blocks).toHaveLength(8);
    const { status, stdout, stderr } = shell(blocks, { SERVICE_BASE_URL: url });
    expect([stderr, status]).toEqual(["", 0]);
    const [token = "", whoami = "", numbers = "", , config = "", sent = "", body = "", signatures = ""] = stdout
      .split(BETWEEN)
      .map((text) => text.trim());
    expect(token).toMatch(/^[\w.~-]{16,}$/);
    expect(JSON.parse(whoami)).toMatchObject({ apiClientId: "ac_main", assignedNumbers: { total: 5 } });
    expect(JSON.parse(numbers).numbers[0]).toMatchObject({ numberId: "num_000001", smsEnabled: true });
    expect(JSON.parse(config)).toMatchObject({ enabled: true, signingEnabled: true, hasCurrentSecret: true });
    expect(JSON.parse(sent)).toMatchObject({ results: [{ to: "+14155550123", status: "QUEUED" }], errors: [] });
    expect(JSON.parse(body)).toMatchObject({ eventType: "message.queued", data: { externalReference: "order-1" } });
    const [made, came, ...rest] = signatures.split("\n");
    expect([made, rest]).toEqual([came, []]);
    expect(made).toMatch(/^[0-9a-f]{64}$/);
  });

  it("would show a body that is not the signed one (DLV-5)", async () => {
    const running = new Running(["emulator", "--json", "--port=0"], { ONCEHOOK_CLIENT_SECRET: "example" });
    const { url } = await running.announced();
    const altered = [...blocks.slice(0, -1), "printf ' ' >> body\n", ...blocks.slice(-1)];
    const { stdout } = shell(altered, { SERVICE_BASE_URL: url });
    const [made, came] = stdout.split(BETWEEN).at(-1)?.trim().split("\n") ?? [];
    expect(made).toMatch(/^[0-9a-f]{64}$/);
    expect(came).toMatch(/^[0-9a-f]{64}$/);
    expect(made).not.toBe(came);
  });

  it("ends by itself when no webhook comes", () => {
    const [receiver = ""] = blocks.filter((block) => block.includes("RECEIVER=$!"));
    const hurried = receiver.replace("30_000", "300");
    expect(hurried).not.toBe(receiver);
    const { status, stdout, stderr } = shell([hurried, 'wait "$RECEIVER"\n', "echo more\n"], {});
    expect([status, stderr]).toEqual([1, "no webhook came within 30 s\n"]);
    expect(stdout).not.toContain("more");
  });

  it("leaves no receiver behind when it is ended", { tags: "full" }, async () => {
    const [receiver = ""] = blocks.filter((block) => block.includes("RECEIVER=$!"));
    const { stdout } = shell([receiver, 'echo "$RECEIVER"; wait "$RECEIVER"\n'], {}, 6_000);
    const pid = Number(stdout.split(BETWEEN).at(-1));
    expect(pid).toBeGreaterThan(1);
    await expect.poll(() => runs(pid)).toBe(false);
  });
});

function shell(parts: readonly string[], environment: Record<string, string>, timeout = 25_000) {
  // A shell that waits is ended by the time limit, its receiver by itself only later.
  const guard = `trap '[ -z "\${RECEIVER:-}" ] || kill "$RECEIVER" 2>/dev/null || :' EXIT\ntrap 'exit 1' TERM\n`;
  const script = guard + parts.join(`printf '\\n%s\\n' '${BETWEEN}'\n`);
  const { PATH = "", HOME = "" } = process.env;
  return spawnSync("sh", ["-eu", "-c", script], {
    encoding: "utf8",
    timeout,
    env: { PATH, HOME, ...environment },
  });
}
