/** The server of `oncehook listen`: its routes, what a supervisor is told, and where it cannot listen. */
import { afterEach, describe, expect, it } from "vitest";
import { createReceiver, type Receiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { type Serving, serve } from "../../../src/tools/cli/listen-run.ts";
import { signedRequest, TEST_SECRET } from "../../../src/tools/testing/deliver.ts";
import { fixtures } from "../../../src/tools/testing/fixtures.ts";

const open: { readonly serving: Serving; readonly receiver: Receiver<never> }[] = [];

async function listening(host = "127.0.0.1") {
  const store = memoryStore({ volatile: true });
  const receiver = createReceiver({ secrets: TEST_SECRET, store, logger: silentLogger }).onAny(() => {});
  await receiver.start();
  const serving = await serve(receiver, { host, port: 0, path: "/webhooks" });
  open.push({ serving, receiver });
  const ask = (path: string, init?: RequestInit) => fetch(new URL(path, serving.url), init);
  return { serving, receiver, ask };
}

afterEach(async () => {
  for (const { serving, receiver } of open.splice(0)) {
    await serving.close().catch(() => {});
    await receiver.stop();
  }
});

describe("serve()", () => {
  it("receives at its path, with or without a query, and knows no other", async () => {
    const { serving, ask } = await listening();
    expect(serving.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/webhooks$/);
    const { headers, body } = signedRequest(fixtures.queued());
    expect((await ask("/webhooks?a=b", { method: "POST", headers, body })).status).toBe(200);
    expect((await ask("/webhooks", { method: "POST", body: "{}" })).status).toBe(401);
    expect((await ask("/other")).status).toBe(404);
  });

  it("says that it lives and whether it is ready, to GET and HEAD alone", async () => {
    const { receiver, ask } = await listening();
    for (const path of ["/healthz", "/readyz"]) {
      expect(await (await ask(path)).json()).toMatchObject({ status: "ok" });
      expect((await ask(path, { method: "HEAD" })).status).toBe(200);
      const refused = await ask(path, { method: "POST" });
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    }
    await receiver.stop();
    expect((await ask("/healthz")).status).toBe(200);
    expect((await ask("/readyz")).status).toBe(503);
  });

  it("names the flag of what it cannot listen on", async () => {
    const { serving, receiver } = await listening();
    const { port } = new URL(serving.url);
    const again = serve(receiver, { host: "127.0.0.1", port: Number(port), path: "/webhooks" });
    await expect(again).rejects.toThrow(/in use.*--port/);
    const elsewhere = serve(receiver, { host: "203.0.113.1", port: 0, path: "/webhooks" });
    await expect(elsewhere).rejects.toThrow(/--host/);
  });
});
