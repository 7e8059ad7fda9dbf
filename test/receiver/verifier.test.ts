/** Verification alone, without an inbox: the same checks in the same order, and an answer for everything. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createVerifier, type Keyring, type KeyringContext, SetupError } from "../../src/index.ts";
import { incoming, MINUTE, recordedLog, SECRET, type Wish } from "./bench.ts";
import { inbound } from "./events.ts";

const body = inbound();

function verify(wish: Wish = {}, options: Partial<Parameters<typeof createVerifier>[0]> = {}, text = body) {
  return createVerifier({ secrets: SECRET, ...options })(incoming(text, Date.now(), wish));
}

async function statusOf(wish: Wish, options = {}, text = body): Promise<number> {
  const result = await verify(wish, options, text);
  return result.ok ? 200 : result.answer.status;
}

describe("createVerifier()", () => {
  it("gives the event and the exact bytes (RCV-1)", async () => {
    const result = await verify();
    expect(result).toMatchObject({ ok: true, event: { eventType: "message.inbound" } });
    expect(result.ok && Buffer.from(result.bytes).toString()).toBe(body);
  });

  it.each([
    ["an unsigned body", { unsigned: true }, 401],
    ["another secret", { secret: "some-other-secret-of-32-bytes-xx" }, 401],
    ["6 minutes of age", { at: Date.now() - 6 * MINUTE }, 401],
    ["an encoding", { headers: { "content-encoding": "gzip" } }, 415],
    ["a declared length over the limit", { headers: { "content-length": "262145" } }, 413],
    ["a body over the limit", { readBody: () => ({ ok: false, reason: "too_large" }) as const }, 413],
    ["a body cut short", { readBody: () => ({ ok: false, reason: "truncated" }) as const }, 400],
    ["a read that was cut", { readBody: () => ({ ok: false, reason: "cut" }) as const }, 503],
    ["a parsed body", { readBody: () => ({ ok: false, reason: "already_parsed" }) as const }, 500],
    ["a reader that throws", { readBody: () => Promise.reject(new Error("gone")) }, 500],
  ] satisfies [string, Wish, number][])("answers %s (RCV-2)", async (_, wish, status) => {
    expect(await statusOf(wish)).toBe(status);
  });

  it("answers a signed body that is no event with 400", async () => {
    expect(await statusOf({}, {}, "not json")).toBe(400);
  });

  it("takes no kind unsigned: there is nothing to verify of it", async () => {
    const secrets = { inbound: "dangerouslyUnsigned", delivery: SECRET } as const;
    expect(() => createVerifier({ secrets })).toThrow(/only a receiver takes unsigned kinds/);
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => write.mockRestore());
    expect(await statusOf({}, { secrets: async () => secrets })).toBe(503);
    expect(write.mock.calls.join()).toContain("only a receiver takes unsigned kinds");
  });

  it("reads a keyring per tenant, and answers 503 when it can not (RCV-9)", async () => {
    const asked: KeyringContext[] = [];
    const secrets = async (context: KeyringContext): Promise<Keyring | undefined> => {
      asked.push(context);
      const { tenant } = context;
      if (tenant === "broken") throw new Error("down");
      return tenant === "known" ? { current: { secret: SECRET, tenant: "apc_1" } } : undefined;
    };
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => write.mockRestore());
    expect(await statusOf({ tenant: "known", route: "/hooks" }, { secrets })).toBe(200);
    expect(await statusOf({ tenant: "stranger" }, { secrets })).toBe(401);
    expect(await statusOf({}, { secrets })).toBe(401);
    expect(await statusOf({ tenant: "broken" }, { secrets })).toBe(503);
    expect(asked).toEqual([{ tenant: "known", route: "/hooks" }, { tenant: "stranger" }, {}, { tenant: "broken" }]);
    const lines = write.mock.calls.map(([line]) => JSON.parse(`${line}`));
    expect(lines).toMatchObject([
      { level: "error", code: "keyring_unavailable" },
      { level: "warn", code: "keyring_unavailable" },
    ]);
  });

  it.each([
    [
      "raw_body_unavailable",
      "are gone. In Koa: …",
      { readBody: () => ({ ok: false, reason: "already_parsed", fix: "In Koa: …" }) as const },
      {},
    ],
    ["Error", "could not be verified", { readBody: () => Promise.reject(new Error("a text of somebody's")) }, {}],
    [
      "keyring_unavailable",
      "keyring provider",
      {},
      { secrets: () => Promise.reject(new Error("vault down: password")) },
    ],
  ] satisfies [string, string, Wish, object][])(
    "logs %s with what to do, and nothing else's text",
    async (code, says, wish, options) => {
      const { log, logger } = recordedLog();
      const result = await verify(wish, { logger, ...options });
      expect(result.ok).toBe(false);
      expect(log.at(-1)).toMatchObject({ fields: { code }, message: expect.stringContaining(says) });
      expect(JSON.stringify(log)).not.toMatch(/somebody|password/);
    },
  );

  it("logs 10 lines a second at most, and none for a refused delivery", async () => {
    const { log, logger } = recordedLog();
    const verifyOne = createVerifier({ secrets: SECRET, logger });
    const readBody = () => ({ ok: false, reason: "already_parsed" }) as const;
    for (let index = 0; index < 30; index++) {
      await verifyOne(incoming(body, Date.now(), { readBody }));
      await verifyOne(incoming(body, Date.now(), { unsigned: true }));
    }
    expect(log.length).toBeGreaterThanOrEqual(10);
    expect(log.length).toBeLessThanOrEqual(20);
  });

  it("logs nothing of a body that was only cut short, and says what became of a delivery without a keyring", async () => {
    const { log, logger } = recordedLog();
    for (const reason of ["truncated", "too_large", "cut"] as const) {
      await verify({ readBody: () => ({ ok: false, reason }) }, { logger });
    }
    expect(log).toEqual([]);
    await verify({}, { logger, secrets: () => Promise.reject(new Error("down")) });
    expect(log.at(-1)?.message).toMatch(/^A delivery could not be verified; it was answered with 503\. ./);
  });

  it("answers 401 to a body that came so slowly that its timestamp has become too old (RCV-2)", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const bytes = Buffer.from(body);
    const readBody = () => {
      vi.setSystemTime(Date.now() + 6 * MINUTE);
      return { ok: true, bytes } as const;
    };
    expect(await statusOf({ readBody })).toBe(401);
  });

  it("takes a limit of 1 KiB to 32 MiB, and says so when it is another", () => {
    for (const maxBodyBytes of [1_024, 33_554_432]) {
      expect(() => createVerifier({ secrets: SECRET, maxBodyBytes })).not.toThrow();
    }
    expect(() => createVerifier({ secrets: SECRET, maxBodyBytes: 33_554_433 })).toThrow(
      'Option "maxBodyBytes" must be a whole number from 1024 to 33554432 bytes; it is 33554433.',
    );
  });

  it("names itself and the likely option when one is misspelt", () => {
    const misspelt = { secrets: SECRET, maxBodyByte: 2_048 };
    expect(() => createVerifier(misspelt)).toThrow(
      'createVerifier has no option "maxBodyByte". Did you mean "maxBodyBytes"?',
    );
    expect(() => createVerifier({ secrets: SECRET, logger: {} as never })).toThrow('Option "logger"');
    expect(() => createVerifier({ secrets: SECRET, toleranceMs: 0 })).toThrow('Option "toleranceMs"');
    expect(() => createVerifier({ secrets: SECRET, timestampFormat: "x" as never })).toThrow(
      'Option "timestampFormat"',
    );
    expect(() => createVerifier({ secrets: "short" })).toThrow(SetupError);
  });
});
