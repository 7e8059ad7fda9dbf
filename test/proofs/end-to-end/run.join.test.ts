/**
 * The join of a send to its outcome: one process receives and handles, this one sends and waits on the same inbox, and it
 * does not matter which comes first.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type MessageRef, type WebhookEvent } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type Client, createClient } from "../../../src/messaging/client/client.ts";
import type { ClientOptions } from "../../../src/messaging/client/options.ts";
import { createEmulator, type Emulator, type EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { rotateSecret } from "../../../src/messaging/rotation/index.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { createFakeClock, memorySecrets } from "../../../src/tools/testing/index.ts";
import { newInboxFile } from "../../receiver/bench.ts";
import { freePort } from "../../support/free-port.ts";

/** Compiled by the tests' global set-up. */
const built = (name: string) =>
  fileURLToPath(new URL(`../../../.build/test/proofs/end-to-end/${name}.js`, import.meta.url));
const SECRET = "a-webhook-signing-secret-of-32-b";
/** After it every message has ended. */
const LIFE_MS = 10_000;
const FAILING = "+15005550002";

const isOutcome = ({ eventType }: WebhookEvent) => eventType === "message.delivery" || eventType === "message.failed";

describe("a send and its outcome, in two processes", () => {
  it("finds the outcome that was handled before it is waited for", async () => {
    const { send, emulator, receiver } = await start();
    const ref = await send();
    await emulator.clock.advance(LIFE_MS);
    await receiver.waitFor(ref, "message.delivery");
    const again = await receiver.waitFor(ref, "message.delivery", { timeoutMs: 0 });
    expect(again).toMatchObject({ messageId: ref.messageId, data: { status: "delivered" } });
  });

  it("finds the outcome that happens while it is waited for", { tags: "full" }, async () => {
    const { send, emulator, receiver } = await start();
    const ref = await send();
    const waiting = receiver.waitFor(ref, "message.delivery");
    await expect(receiver.waitFor(ref, "message.delivery", { timeoutMs: 150 })).rejects.toThrow("not handled within");
    await emulator.clock.advance(LIFE_MS);
    expect(await waiting).toMatchObject({ messageId: ref.messageId, sequence: 3 });
  });

  it("finds an event that came before the answer to its send (DLV-20)", async () => {
    let before: readonly string[] = [];
    const { send, emulator, receiver } = await start({
      faults: [{ match: { eventType: "message.queued" }, action: { type: "eventBeforeResponse" } }],
      onResponse({ operation }) {
        if (operation !== "messages.send") return;
        before = emulator.control.deliveries().map(({ eventType, state }) => `${eventType} ${state}`);
      },
    });
    const ref = await send();
    expect(before).toEqual(["message.queued delivered"]);
    expect(await receiver.waitFor(ref, "message.queued")).toMatchObject({ sequence: 1 });
  });

  it("finds the failure of a message by a function that takes both outcomes", { tags: "full" }, async () => {
    const { send, emulator, receiver } = await start();
    const ref = await send("order-1", FAILING);
    const waiting = receiver.waitFor(ref, isOutcome);
    await emulator.clock.advance(LIFE_MS);
    expect(await waiting).toMatchObject({ eventType: "message.failed", data: { status: "failed" } });
  });

  it("rejects when the outcome became a dead letter", { tags: "full" }, async () => {
    const { send, emulator, receiver } = await start();
    const ref = await send("dead");
    const waiting = expect(receiver.waitFor(ref, "message.delivery")).rejects.toMatchObject({
      code: "dead_lettered",
      fields: { state: "dead" },
    });
    await emulator.clock.advance(LIFE_MS);
    await waiting;
  });

  it("waits through the handler's process being killed and started again", { tags: "full" }, async () => {
    const { send, emulator, receiver, handling } = await start();
    const ref = await send("killed");
    const waiting = receiver.waitFor(ref, "message.delivery");
    const said = handling.next("in the handler");
    await emulator.clock.advance(LIFE_MS);
    await said;
    await handling.kill();
    await handling.start();
    expect(await waiting).toMatchObject({ messageId: ref.messageId, eventType: "message.delivery" });
  });

  it("ends with the signal's reason, and with the time that it was given", { tags: "full" }, async () => {
    const { send, receiver } = await start();
    const ref = await send();
    const controller = new AbortController();
    const reason = new Error("The customer has left.");
    const aborted = expect(receiver.waitFor(ref, "message.delivery", { signal: controller.signal })).rejects.toBe(
      reason,
    );
    controller.abort(reason);
    await aborted;
    await expect(receiver.waitFor(ref, "message.delivery", { timeoutMs: 50 })).rejects.toMatchObject({
      code: "wait_timeout",
      fields: { messageId: ref.messageId },
    });
  });

  it("holds up no rotation: who only waits, with the same secret store, says that it has the new secret too", async () => {
    const clock = createFakeClock();
    const { client } = await service({ clock: "real", systemClock: clock });
    const secrets = memorySecrets({ receivers: async () => (await receiver.inbox.stats()).instances });
    const receiver = createReceiver({ secrets, clock, store: sqliteStore(newInboxFile()), logger: silentLogger });
    onTestFinished(() => receiver.stop());
    const ref = { apiClientId: (await client.whoami()).apiClientId, messageId: "msg_1" };
    const waiting = expect(receiver.waitFor(ref, "message.delivery", { timeoutMs: 60_000 })).rejects.toThrow();
    const rotating = rotateSecret({ client, kind: "delivery", secrets, clock, logger: silentLogger });
    let isUnderWay = true;
    const ended = () => {
      isUnderWay = false;
    };
    rotating.then(ended, ended);
    while (isUnderWay) await clock.advance(500);
    expect(await rotating).toMatchObject({ receivers: 1 });
    await clock.advance(60_000);
    await waiting;
  });

  it("ends by itself in a process that only sends and waits, without a line of warning", { tags: "full" }, async () => {
    const { emulator, inboxPath } = await start({ port: 0, clock: "x60" });
    const { url, clientId, clientSecret, fixtures } = emulator;
    const terms = [inboxPath, url, clientId, clientSecret, fixtures.numbers.full, SECRET];
    const child = spawn(process.execPath, [built("join-waiting-child"), ...terms], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said = { out: "", err: "" };
    child.stdout.on("data", (chunk) => (said.out += chunk));
    child.stderr.on("data", (chunk) => (said.err += chunk));
    const [code] = await once(child, "close");
    expect(said.out).toMatch(/^message\.delivery of msg_/);
    // Where the test's files lie is no affair of the waiting process.
    expect(said.err.split("\n").filter((line) => line !== "" && !line.includes("ephemeral_disk"))).toEqual([]);
    expect(code).toBe(0);
  });
});

type ServiceOptions = EmulatorOptions & Pick<ClientOptions, "onResponse">;

/** What this process has to do with: a service, its client, and a receiver on the inbox of another process. */
async function start(options: ServiceOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-join-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const inboxPath = join(folder, "inbox.db");
  const handling = await Handling.create(inboxPath);
  onTestFinished(() => handling.kill());
  await handling.start();
  const { emulator, client } = await service({ deliveryUrl: handling.url, webhookSecret: SECRET, ...options });
  const receiver = createReceiver({ secrets: SECRET, store: sqliteStore(inboxPath), logger: silentLogger });
  onTestFinished(() => receiver.stop());
  return { emulator, inboxPath, receiver, handling, send: senderOf(emulator, client) };
}

async function service({ onResponse, ...options }: ServiceOptions) {
  const emulator = await createEmulator({ port: null, logger: silentLogger, ...options });
  onTestFinished(() => emulator.close());
  const { url: baseUrl, clientId, clientSecret } = emulator;
  const client = createClient({
    ...{ baseUrl, clientId, clientSecret },
    ...(options.systemClock !== undefined && { clock: options.systemClock }),
    ...(onResponse !== undefined && { onResponse }),
    fetch: (input, init) => emulator.handle(new Request(input, init)),
  });
  return { emulator, client };
}

function senderOf({ fixtures }: Emulator, client: Client) {
  return async (externalReference = "order-1", to = "+14155550101"): Promise<MessageRef> => {
    const { apiClientId } = await client.whoami();
    const message = { sendFrom: fixtures.numbers.full, to: [to], messageType: "SMS", text: "hello" } as const;
    const sent = await client.messages.send({ ...message, externalReference });
    const [messageId = ""] = sent.throwIfRejected().results.map((accepted) => accepted.messageId);
    return { apiClientId, messageId };
  };
}

/** The other process. */
class Handling {
  readonly url: string;
  readonly #inboxPath: string;
  readonly #port: number;
  #child: ChildProcess | null = null;
  readonly #heard = new Set<(line: string) => void>();

  private constructor(inboxPath: string, port: number) {
    this.#inboxPath = inboxPath;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}/webhooks`;
  }

  static async create(inboxPath: string): Promise<Handling> {
    return new Handling(inboxPath, await freePort());
  }

  async start(): Promise<void> {
    const terms = [this.#inboxPath, String(this.#port), SECRET];
    const child = spawn(process.execPath, [built("join-child"), ...terms], { stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    const listening = this.next("listening");
    createInterface({ input: child.stdout }).on("line", (line) => {
      for (const heard of this.#heard) heard(line);
    });
    const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`It ended with ${code}.`)));
    ended.catch(() => {});
    await Promise.race([listening, ended]);
  }

  /** Resolves when it says `wanted`. */
  next(wanted: string): Promise<void> {
    return new Promise((resolve) => {
      const heard = (line: string) => {
        if (line !== wanted) return;
        this.#heard.delete(heard);
        resolve();
      };
      this.#heard.add(heard);
    });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }
}
