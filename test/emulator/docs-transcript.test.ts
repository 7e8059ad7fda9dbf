/** Runs the transcript of docs/emulator.md, as it stands, in one shell against the command. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Running, runs } from "../cli/running.ts";

const guide = readFileSync(fileURLToPath(new URL("../../docs/emulator.md", import.meta.url)), "utf8");
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
