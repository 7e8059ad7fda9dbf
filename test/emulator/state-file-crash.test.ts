/** Kills an emulator with a state file by SIGKILL: what was answered is kept, and what was pending goes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { startCatcher } from "./support.ts";

/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/emulator/state-child.js", import.meta.url));

interface Running {
  /** A call with JSON; the answer's status and text. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<[number, string]>;
  token(): Promise<string>;
  kill(): Promise<void>;
}

async function launch(state: string, deliveryUrl: string): Promise<Running> {
  const child = spawn(process.execPath, [CHILD, state, deliveryUrl], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => kill(child));
  const lines = createInterface({ input: child.stdout });
  const early = once(child, "close").then(() => Promise.reject(new Error("The emulator ended before it was ready.")));
  const [line] = await Promise.race([once(lines, "line"), early]);
  const { url, clientId, clientSecret } = JSON.parse(String(line));
  const call: Running["call"] = async (method, path, body, headers = {}) => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, { method, headers: { ...type, ...headers }, ...init });
    return [response.status, await response.text()];
  };
  return {
    call,
    async token() {
      const credentials = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
      return JSON.parse((await call("POST", "/api/auth/token", credentials))[1]).access_token;
    },
    kill: () => kill(child),
  };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}

function newFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "oncehook-crash-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "state.db");
}

const MESSAGE = {
  sendFrom: "num_000001",
  to: ["+14155550123"],
  messageType: "SMS",
  text: "hello",
  externalReference: "order-1",
};

it("goes on after a kill: tokens, secrets, idempotency keys, retries and the clock", async () => {
  const catcher = await startCatcher();
  catcher.answer = 500;
  const state = newFile();
  const first = await launch(state, catcher.url);
  const authorization = `Bearer ${await first.token()}`;
  const webhook = { signingEnabled: true, secret: "rotated-secret" };
  expect((await first.call("PATCH", "/api/core/webhooks/delivery", webhook, { authorization }))[0]).toBe(200);
  const send = ({ call }: Running) =>
    call("POST", "/api/core/messages/send", MESSAGE, { authorization, "idempotency-key": "k-1" });
  const answer = await send(first);
  expect(answer[0]).toBe(202);
  await first.call("POST", "/_emulator/clock", { advanceMs: 30_000 });
  expect(catcher.caught).toHaveLength(3);
  const kept = await first.call("GET", "/_emulator/state");
  await first.kill();

  catcher.answer = 200;
  const second = await launch(state, "http://127.0.0.1:9/unused");
  expect((await second.call("GET", "/_emulator/state"))[1] === kept[1]).toBe(true);
  expect(await send(second)).toEqual(answer);
  await second.call("POST", "/_emulator/clock", { advanceMs: 29_999 });
  expect(catcher.caught).toHaveLength(3);
  await second.call("POST", "/_emulator/clock", { advanceMs: 1 });
  expect(catcher.caught.slice(3).map(({ event }) => event.sequence)).toEqual([1, 2, 3]);
  for (const { headers, raw } of catcher.caught.slice(3)) {
    const signed = Buffer.concat([Buffer.from(`${headers["x-service-timestamp"]}.`), raw]);
    expect(headers["x-service-signature"]).toBe(createHmac("sha256", "rotated-secret").update(signed).digest("hex"));
  }
});

it("has taken each send at most once, and all that it answered, whenever it is killed (SND-17)", {
  tags: "full",
  timeout: 60_000,
}, async () => {
  const catcher = await startCatcher();
  const state = newFile();
  const answered = new Map<string, string>();
  const keys: string[] = [];
  for (let round = 0; round < 3; round++) {
    const emulator = await launch(state, catcher.url);
    const authorization = `Bearer ${await emulator.token()}`;
    const send = async (key: string) => {
      const headers = { authorization, "idempotency-key": key };
      const [status, text] = await emulator.call("POST", "/api/core/messages/send", MESSAGE, headers);
      expect([key, status, answered.get(key) ?? text]).toEqual([key, 202, text]);
      answered.set(key, text);
    };
    // What the last kill left open is sent again, as a client would.
    await Promise.all(keys.map(send));
    const fresh = Array.from({ length: 20 }, (_, i) => `k-${round}-${i}`);
    keys.push(...fresh);
    const before = answered.size;
    const sends = fresh.map((key) => send(key).catch((error) => expect(error).toBeInstanceOf(TypeError)));
    // Killed in the midst of them: a different one each time.
    const enough = before + 3 + 5 * round;
    let over = false;
    const all = Promise.all(sends).finally(() => (over = true));
    while (answered.size < enough && !over) await new Promise((resolve) => setImmediate(resolve));
    await emulator.kill();
    await all;
    expect(answered.size).toBeGreaterThanOrEqual(enough);
  }
  const last = await launch(state, catcher.url);
  const [, text] = await last.call("GET", "/_emulator/messages");
  const ids = JSON.parse(text).messages.map(({ messageId }: { messageId: string }) => messageId);
  const told = [...answered.values()].map((answer) => JSON.parse(answer).results[0].messageId);
  expect(new Set(told).size).toBe(told.length);
  expect(told.filter((id) => !ids.includes(id))).toEqual([]);
  expect(ids.length).toBeLessThanOrEqual(keys.length);
  expect(keys).toHaveLength(60);
});
