/** The checks of `oncehook doctor` that are rules of their own: versions, guessing, clocks, addresses. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/internal/clock.ts";
import { lasting } from "../../../../src/internal/lasting.ts";
import { doctorCommand } from "../../../../src/tools/cli/doctor/command.ts";
import { named, newestDeliveryFindings, ServiceClock } from "../../../../src/tools/cli/doctor/finding.ts";
import { caretRange, isWithin, runtimeFindings, thisRuntime } from "../../../../src/tools/cli/doctor/runtime.ts";
import { bitsOf, LEAST_BITS } from "../../../../src/tools/cli/doctor/secret.ts";
import { faultOf, shownUrl, urlFindings } from "../../../../src/tools/cli/doctor/service.ts";
import { clockAt } from "./scene.ts";

describe("versions", () => {
  it.each([
    ["^4.21.0", "4.21.0", true],
    ["^4.21.0", "4.22.1", true],
    ["^4.21.0", "4.20.9", false],
    ["^4.21.0", "5.0.0", false],
    ["^0.3.25", "0.3.26", true],
    ["^0.3.25", "0.4.0", false],
    ["^0.0.3", "0.0.4", false],
  ])("%s allows %s: %s", (range, version, isAllowed) => {
    expect(isWithin(version, caretRange(range))).toBe(isAllowed);
  });

  it("are read of every peer that this package has", () => {
    const { manifest } = thisRuntime();
    const ranges = Object.values(manifest.peerDependencies).flatMap((text) => text.split("||"));
    expect(ranges.length).toBeGreaterThan(5);
    for (const range of ranges) expect(range.trim()).toMatch(/^\^\d+\.\d+\.\d+$/);
  });

  it("of what is not installed are no problem", () => {
    const findings = runtimeFindings({ ...thisRuntime(), installed: () => null });
    expect(findings.map(({ code, level }) => `${code} ${level}`)).toEqual(["node ok", "packages ok"]);
  });
});

describe("a secret", () => {
  it.each([
    ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false],
    ["abcabcabcabcabcabcabc", false],
    ["1234123412341234", false],
    ["9d1c5b0f6e2a47c3", true],
    ["9d1c5b0f6e2a47c388f04be1d7a3f965", true],
    ["dGhpcyBpcyBub3QgYSBzZWNyZXQK", true],
  ])("%s can hardly be guessed: %s", (text, isHard) => {
    expect(bitsOf(text) >= LEAST_BITS).toBe(isHard);
  });
});

describe("the service's clock", () => {
  const answering = (date: string | null) => async () => new Response("", { headers: date === null ? {} : { date } });
  const ask = async (aheadMs: number, date: string | null = new Date().toUTCString()) => {
    const clock = new ServiceClock(clockAt(aheadMs), answering(date));
    await clock.fetch("https://api.example.com/");
    return clock.findings().map(({ level }) => level);
  };

  it("agrees within half a minute, and is a problem near the tolerance (RCV-3)", async () => {
    for (const ms of [0, 20_000]) expect(await ask(ms)).toEqual(["ok"]);
    for (const ms of [-60_000, 60_000]) expect(await ask(ms)).toEqual(["warning"]);
    for (const ms of [-300_000, 300_000]) expect(await ask(ms)).toEqual(["problem"]);
  });

  it("is not judged by answers that do not tell the time", async () => {
    expect(await ask(300_000, null)).toEqual([]);
    expect(await ask(300_000, "yesterday")).toEqual([]);
  });
});

describe("the newest delivery", () => {
  it.each([
    [null, []],
    [-60_000, []],
    [29_000, []],
    [60_000, ["warning"]],
    [300_000, ["problem"]],
  ])("signed %i ms ahead of this machine's clock", (aheadMs, levels) => {
    const clock = clockAt(0);
    const newestSignedAt = aheadMs === null ? null : clock.now() + aheadMs;
    expect(newestDeliveryFindings({ newestSignedAt }, clock).map(({ level }) => level)).toEqual(levels);
  });
});

describe("an address", () => {
  it.each([
    ["https://hooks.example.com/webhooks", null],
    ["http://hooks.example.com/webhooks", "url_insecure"],
    ["https://localhost:3000/", "url_private"],
    ["https://10.1.2.3/", "url_private"],
    ["https://[::1]/", "url_private"],
    ["https://[fd00::1]/", "url_private"],
    ["https://app/", "url_private"],
    ["https://app.internal/", "url_private"],
    ["https://8.8.8.8/", null],
    ["ftp://hooks.example.com/", "url_invalid"],
    ["hooks.example.com", "url_invalid"],
    ["localhost:3000/webhooks", "url_invalid"],
  ])("%s: %s", (address, fault) => {
    expect(faultOf(address, false)).toBe(fault);
    expect(faultOf(address, true)).toBe(fault === "url_invalid" ? fault : null);
  });

  it("is shown without what may be a secret in it", () => {
    expect(shownUrl("https://user:pass@hooks.example.com/in/s3cr3t?token=1")).toBe("https://hooks.example.com");
    for (const address of ["s3cr3t", "localhost:3000/webhooks", "user:pass@hooks.example.com/in", "mailto:me"])
      expect(shownUrl(address)).toBe("the address");
  });
});

it("says of a port that fetch refuses what is wrong with it", async () => {
  const findings = await urlFindings("http://127.0.0.1:6000/", { clock: systemClock, fetch, isLocal: true });
  expect(JSON.stringify(findings)).toContain("cannot be reached: fetch connects to no such port");
});

describe("the help of oncehook doctor", () => {
  it("names each flag, what it lets be looked at, and examples", () => {
    let text = "";
    doctorCommand()
      .configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 100 })
      .outputHelp();
    expect(text).toMatchSnapshot();
  });
});

describe("docs/cli.md", () => {
  it("lists the codes that there are", () => {
    const folder = new URL("../../../../src/tools/cli/doctor/", import.meta.url);
    const sources = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), "utf8"));
    const page = readFileSync(new URL("../../../../docs/cli.md", import.meta.url), "utf8");
    const [, section = ""] = page.split("\n## doctor\n");
    const rows = (section.split("\n## ")[0] ?? "").matchAll(/^\| ((?:`[a-z_]+`[,;]? ?)+)\|/gm);
    const documented = [...rows].flatMap(([, cell = ""]) => [...cell.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code));
    const said = sources.join("\n").matchAll(/(?:problem|warning|found|make)\(\s*"([a-z_]+)"/g);
    const codes = [...said].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(30);
    expect(documented).toEqual(expect.arrayContaining(codes));
    expect(new Set(documented).size).toBe(documented.length);
  });
});

describe("findings", () => {
  it("name a few, and times in the largest unit that they have", () => {
    expect(named(["a", "b", "c", "d", "e"])).toBe("a, b, c and 2 more");
    expect([900, 61_000, 3_600_000, 200_000_000].map(lasting)).toEqual(["0 seconds", "1 minute", "1 hour", "2 days"]);
  });
});
