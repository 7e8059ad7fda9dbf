/** How much the request log keeps of calls that anybody can make: they must not fill the memory. */
import { describe, expect, it } from "vitest";
import type { Emulator, RequestRecord } from "../../src/emulator/index.ts";
import { call, send, start, tokenOf } from "./support.ts";

const last = (emulator: Emulator): RequestRecord => {
  const record = emulator.control.requests().at(-1);
  if (record === undefined) throw new Error("nothing was logged");
  return record;
};

const CUT = / \[cut, \d+ in all\]$/;

describe("the request log's bounds", () => {
  it("keep 1 KiB of a path", async () => {
    const emulator = await start();
    const path = `/${"p".repeat(1023)}`;
    await call(emulator, "GET", path);
    expect(last(emulator).path).toBe(path);
    await call(emulator, "GET", `${path}q`);
    expect(last(emulator).path).toBe(`${path} [cut, 1025 in all]`);
  });

  it("keep 1 KiB of a header's name and value, and say that they were cut", async () => {
    const emulator = await start();
    const token = await tokenOf(emulator);
    const value = "v".repeat(1024);
    const headers = { [`n${value}`]: "n", "x-long": `${value}vv`, "x-short": value };
    await call(emulator, "GET", "/api/core/whoami", { token, headers });
    const name = `n${"v".repeat(1023)} [cut, 1025 in all]`;
    const kept = { [name]: "n", "x-long": `${value} [cut, 1026 in all]`, "x-short": value };
    expect(last(emulator).headers).toEqual({ authorization: "[redacted]", ...kept });
  });

  it("keep 64 headers, and say how many there were", async () => {
    const emulator = await start();
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "v"]));
    await call(emulator, "GET", "/", { headers: many(64) });
    expect(last(emulator).headers).toEqual(many(64));
    await call(emulator, "GET", "/", { headers: many(70) });
    const { headers } = last(emulator);
    expect(Object.keys(headers)).toHaveLength(65);
    expect(headers["[cut]"]).toBe("70 in all");
  });

  it("keep about 4 KiB of headers together", async () => {
    const emulator = await start();
    const headers = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`x-${i}`, "v".repeat(1000)]));
    await call(emulator, "GET", "/", { headers });
    expect(JSON.stringify(last(emulator).headers).length).toBeLessThan(5500);
    expect(last(emulator).headers["[cut]"]).toBe("16 in all");
  });

  it.each(["/api/core/messages/send", "/api/auth/token", "/elsewhere"])(
    "keep 1 KiB of a body from a caller that proved nothing, of one that did 16 (%s)",
    async (path) => {
      const emulator = await start();
      const body = { text: "x".repeat(10_000) };
      await call(emulator, "POST", path, { body });
      const { status, ...record } = last(emulator);
      expect([400, 401, 404]).toContain(status);
      expect(JSON.stringify(record).length).toBeLessThan(2000);
      if (path !== "/api/auth/token") expect(record.body).toMatch(CUT);
      const token = await tokenOf(emulator);
      await send(emulator, token, body);
      expect(last(emulator).body).toMatchObject(body);
    },
  );

  it("keep 16 KiB of a body that a fault rule answered, for that is somebody's test", async () => {
    const action = { type: "status", status: 500 } as const;
    const emulator = await start({ faults: [{ match: { route: "POST /api/core/messages/send" }, action }] });
    const body = { text: "x".repeat(10_000) };
    await call(emulator, "POST", "/api/core/messages/send", { body });
    expect(last(emulator)).toMatchObject({ status: 500, body });
  });

  it("keep a long body whole that is short without its secrets", async () => {
    const emulator = await start();
    const token = await tokenOf(emulator);
    const body = { secret: "s".repeat(20_000), signingEnabled: true };
    await call(emulator, "PATCH", "/api/core/webhooks/inbound", { token, body });
    expect(last(emulator).body).toEqual({ secret: "[redacted]", signingEnabled: true });
  });

  it("cut no character in two", async () => {
    const emulator = await start();
    await call(emulator, "POST", "/elsewhere", { body: { t: `${"x".repeat(1017)}😀${"x".repeat(100)}` } });
    expect(last(emulator).body).toMatch(/x. \[cut, \d+ in all\]$/);
    expect(String(last(emulator).body)).not.toMatch(/[\ud800-\udfff]/);
  });

  it("hold no more memory than what they keep", { tags: "full" }, async () => {
    const emulator = await start();
    const bytes = `{"text":"${"x".repeat(1_000_000)}"}`;
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 200; i++) await call(emulator, "POST", "/elsewhere", { body: bytes });
    expect(emulator.control.requests()).toHaveLength(200);
    // What is still to be collected, in place of a collection that cannot be asked for: 200 whole bodies would be 200 MB.
    await expect.poll(() => process.memoryUsage().heapUsed - before, { timeout: 5000 }).toBeLessThan(100_000_000);
  });
});
