/** Cases of `oncehook doctor` in which the package, a file, the inbox, the service or the public address is not as it should be. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import type { InboxStore } from "../../../../src/inbox/store.ts";
import { silentLogger } from "../../../../src/internal/logger.ts";
import { createClient } from "../../../../src/messaging/client/index.ts";
import { createEmulator, type Emulator, type EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import type { DoctorFlags, Surroundings } from "../../../../src/tools/cli/doctor/examine.ts";
import { installedBeside, thisRuntime } from "../../../../src/tools/cli/doctor/runtime.ts";
import { contextOf, turn } from "../../../stores/sqlite-turns.ts";
import { handle, outboundEvent } from "../inbox-place.ts";
import { newFile, newFolder, newServer } from "../place.ts";
import { clockAt, type InboxWish, newInbox, SECRET } from "./scene.ts";

/** What the command is given, and what is otherwise than here around it. */
export interface Case {
  readonly flags?: DoctorFlags;
  readonly around?: Partial<Surroundings>;
}

/** Makes a package of this version be found beside the application. */
export function withPackage(name: string, version: string, node = "20.19.0"): Partial<Surroundings> {
  const folder = newFolder();
  mkdirSync(join(folder, "node_modules", name), { recursive: true });
  writeFileSync(join(folder, "node_modules", name, "package.json"), JSON.stringify({ name, version }));
  return { runtime: { ...thisRuntime(), node, installed: installedBeside(join(folder, "package.json")) } };
}

/** An inbox whose schema says something else of itself. */
export async function withMeta(meta: Readonly<Record<string, number>>): Promise<Case> {
  const store = await newInbox({ beat: null });
  const db = new Database(store);
  for (const [key, value] of Object.entries(meta)) {
    db.prepare("update oncehook_meta set value = ? where key = ?").run(value, key);
  }
  db.close();
  return { flags: { store } };
}

/** An inbox with one event that ended so. */
export const filled = async (endOf: Parameters<typeof handle>[2]): Promise<Case> => {
  const fill = (store: InboxStore<never>) => handle(store, [outboundEvent("queued", "msg_1")], endOf);
  return { flags: { store: await newInbox({ fill }) } };
};

/** An event that has been due for so long. */
export const pending = (agoMs: number, beat: InboxWish["beat"] = {}): Promise<string> => {
  const event = outboundEvent("queued", "msg_1", { signedAt: Date.now() - agoMs });
  return newInbox({ agoMs, beat, fill: async (store) => void (await store.step(turn<never>({ accepts: [event] }))) });
};

/** Two events that have been due for two minutes, of which a worker took one so long ago, for half a minute unless said otherwise. */
export async function leased(agoMs: number, leaseMs = 30_000, beat: InboxWish["beat"] = {}): Promise<string> {
  const accepts = ["msg_1", "msg_2"].map((id) => outboundEvent("queued", id, { signedAt: Date.now() - 120_000 }));
  const fill = async (store: InboxStore<never>) => void (await store.step(turn<never>({ accepts })));
  const path = await newInbox({ agoMs: 120_000, beat, fill });
  const worker = sqliteStore(path) as InboxStore<never>;
  await worker.open(contextOf({ clock: clockAt(-agoMs), rules: "recorded" }));
  onTestFinished(() => worker.close());
  await worker.step(turn<never>({ claim: { limit: 1, leaseMs } }));
  return path;
}

/** An event that has waited for a gap for so long, and does so on. */
export const waiting = (agoMs: number): Promise<string> => {
  const times = { signedAt: Date.now() - agoMs, occurredAt: Date.now() + agoMs, gapWaitMs: 3 * agoMs };
  const event = outboundEvent("sent", "msg_1", times);
  return newInbox({ agoMs, fill: async (store) => void (await store.step(turn<never>({ accepts: [event] }))) });
};

/** A signed body that is no event. */
export const quarantined = (): Promise<string> => {
  const owner = { source: "service", tenant: null, kinds: [], signer: "s" };
  const origin = { ...owner, slot: "current", signedAt: Date.now(), trace: null };
  const quarantines = [{ ...origin, reason: "invalid_json", digest: Buffer.alloc(32), raw: Buffer.from("{") }];
  return newInbox({ fill: async (store) => void (await store.step(turn<never>({ quarantines }))) });
};

/** Two receivers with different secrets. */
export async function twoKeyrings(): Promise<Case> {
  const store = await newInbox();
  const second = sqliteStore(store) as InboxStore<never>;
  await second.open(contextOf({ rules: "recorded" }));
  onTestFinished(() => second.close());
  await second.heartbeat({ keyringVersion: "another", counters: {} });
  return { flags: { store } };
}

/** A receiver that has counted this since its start. */
export const counting = async (counters: Record<string, number>): Promise<Case> => ({
  flags: { store: await newInbox({ beat: { counters } }) },
});

export const TARGET = "https://hooks.example.com/webhooks";

/** The service, told of a good target; `change` spoils something. */
export async function service(
  change: (emulator: Emulator) => void,
  flags: DoctorFlags = {},
  unspecified: EmulatorOptions["unspecified"] = {},
): Promise<Case> {
  const emulator = await createEmulator({
    ...{ logger: silentLogger, inboundUrl: TARGET, deliveryUrl: TARGET, allowPublicTargets: true },
    unspecified: { "webhooks.exposeEndpointUrl": true, ...unspecified },
  });
  onTestFinished(() => emulator.close());
  change(emulator);
  const { url: baseUrl, clientId, clientSecret } = emulator;
  return { flags: { baseUrl, clientId, clientSecretFile: newFile(clientSecret), ...flags } };
}

/** One kind's default webhook, changed as a user changes it. */
export async function webhook(update: object): Promise<Case> {
  const prepared = await service(() => {});
  const { baseUrl = "", clientId = "" } = prepared.flags ?? {};
  const clientSecret = readFileSync(prepared.flags?.clientSecretFile ?? "", "utf8");
  const client = createClient({ baseUrl, clientId, clientSecret, logger: silentLogger });
  await client.webhooks.update("inbound", { signingEnabled: true, secret: SECRET, ...update });
  return prepared;
}

/** Only the numbers of which one can send stay as they should be. */
export const mended = (emulator: Emulator) => {
  const good = { status: "ACTIVE", smsEnabled: true, campaignRegId: "camp_1" } as const;
  for (const { numberId } of emulator.control.numbers()) emulator.control.updateNumber(numberId, good);
};

/** All of them with the same fault. */
export const everyNumber = (fields: Parameters<Emulator["control"]["updateNumber"]>[1]) => (emulator: Emulator) => {
  mended(emulator);
  for (const { numberId } of emulator.control.numbers()) emulator.control.updateNumber(numberId, fields);
};

/** A server that answers everything so. */
export const answering = async (status: number, headers = {}): Promise<Case> => {
  const url = await newServer((_request, response) => void response.writeHead(status, headers).end("{}"));
  return { flags: { url }, around: {} };
};

/** As a receiver refuses, wherever it is asked. */
export async function refusing(): Promise<Response> {
  return new Response('{"error":"unauthorized"}', { status: 401 });
}

/** What a service says on one route, changed on its way: what the emulator never says. */
export function altering<Body extends object>(route: string, change: (body: Body) => object): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    return String(input).endsWith(route) ? Response.json(change((await response.json()) as Body)) : response;
  };
}
