/** Prepared misconfigurations, each in a place where all else is well: real files, real inboxes, the emulator. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeWebhook } from "../../../adapters/node.ts";
import type { DoctorFlags, Surroundings } from "../../../src/cli/doctor/examine.ts";
import { installedBeside, thisRuntime } from "../../../src/cli/doctor/runtime.ts";
import { createEmulator, type Emulator } from "../../../src/emulator/index.ts";
import { createReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { turn } from "../../stores/sqlite-turns.ts";
import { dead, handle, handled, outboundEvent } from "../inbox-place.ts";
import { clockAt, diagnose, newFile, newFolder, newInbox, newServer, PLENTY, SECRET } from "./scene.ts";

const HOUR = 3_600_000;

interface Case {
  readonly flags?: DoctorFlags;
  readonly around?: Partial<Surroundings>;
}

/** Makes a package of this version be found beside the application. */
function withPackage(name: string, version: string): Partial<Surroundings> {
  const folder = newFolder();
  mkdirSync(join(folder, "node_modules", name), { recursive: true });
  writeFileSync(join(folder, "node_modules", name, "package.json"), JSON.stringify({ name, version }));
  return { runtime: { ...thisRuntime(), node: "20.19.0", installed: installedBeside(join(folder, "package.json")) } };
}

async function withMeta(meta: Readonly<Record<string, number>>): Promise<Case> {
  const store = await newInbox({ beat: null });
  const db = new Database(store);
  for (const [key, value] of Object.entries(meta)) {
    db.prepare("update oncehook_meta set value = ? where key = ?").run(value, key);
  }
  db.close();
  return { flags: { store } };
}

const filled = async (endOf: Parameters<typeof handle>[2]): Promise<Case> => {
  const fill = (store: Parameters<typeof handle>[0]) => handle(store, [outboundEvent("queued", "msg_1")], endOf);
  return { flags: { store: await newInbox({ fill }) } };
};

const pending = (agoMs: number): Promise<string> =>
  newInbox({ agoMs, fill: async (store) => void (await store.step(turn<never>({ accepts: [late(agoMs)] }))) });
const late = (agoMs: number) => outboundEvent("queued", "msg_1", { signedAt: Date.now() - agoMs });

const counting = async (counters: Record<string, number>): Promise<Case> => ({
  flags: { store: await newInbox({ beat: { counters } }) },
});

const TARGET = "https://hooks.example.com/webhooks";

/** The service, told of a good target; `change` spoils something. */
async function service(change: (emulator: Emulator) => void, flags: DoctorFlags = {}): Promise<Case> {
  const emulator = await createEmulator({
    ...{ logger: silentLogger, inboundUrl: TARGET, deliveryUrl: TARGET, allowPublicTargets: true },
    unspecified: { "webhooks.exposeEndpointUrl": true },
  });
  onTestFinished(() => emulator.close());
  change(emulator);
  const { url: baseUrl, clientId, clientSecret } = emulator;
  return { flags: { baseUrl, clientId, clientSecretFile: newFile(clientSecret), ...flags } };
}

/** One kind's default webhook, changed as a user changes it. */
async function webhook(update: object): Promise<Case> {
  const prepared = await service(() => {});
  const { baseUrl = "", clientId = "" } = prepared.flags ?? {};
  const { createClient } = await import("../../../src/client/index.ts");
  const { readFileSync } = await import("node:fs");
  const clientSecret = readFileSync(prepared.flags?.clientSecretFile ?? "", "utf8");
  const client = createClient({ baseUrl, clientId, clientSecret, logger: silentLogger });
  await client.webhooks.update("inbound", { signingEnabled: true, secret: SECRET, ...update });
  return prepared;
}

/** Only the numbers of which one can send stay as they should be. */
const mended = (emulator: Emulator) => {
  const good = { status: "ACTIVE", smsEnabled: true, campaignRegId: "camp_1" } as const;
  for (const { numberId } of emulator.control.numbers()) emulator.control.updateNumber(numberId, good);
};
const everyNumber = (fields: Parameters<Emulator["control"]["updateNumber"]>[1]) => (emulator: Emulator) => {
  mended(emulator);
  for (const { numberId } of emulator.control.numbers()) emulator.control.updateNumber(numberId, fields);
};

const answering = async (status: number, headers = {}): Promise<Case> => {
  const url = await newServer((_request, response) => void response.writeHead(status, headers).end("{}"));
  return { flags: { url }, around: {} };
};

/** By the code that must be found, as the only problem. */
const PROBLEMS: Readonly<Record<string, () => Case | Promise<Case>>> = {
  node_too_old: () => ({ around: { runtime: { ...thisRuntime(), node: "18.20.4" } } }),
  package_out_of_range: () => ({ around: withPackage("express", "3.21.2") }),
  package_crashes: () => ({ around: withPackage("better-sqlite3", "13.0.1") }),
  secret_unreadable: () => ({ flags: { secretFile: join(newFolder(), "missing") } }),
  secret_empty: () => ({ flags: { secretFile: newFile("\n") } }),
  secret_placeholder: () => ({ flags: { secretFile: newFile("your-webhook-secret-goes-here") } }),
  secret_white_space: () => ({ flags: { secretFile: newFile(`${SECRET} \n`) } }),
  secret_unusable: () => ({ around: { env: { ONCEHOOK_WEBHOOK_SECRET: "tooshort" } } }),
  secret_weak: () => ({ flags: { secretFile: newFile("abababababababababababab") } }),
  no_inbox: () => ({ flags: { store: join(newFolder(), "inbox.db") } }),
  store_unavailable: () => ({ flags: { store: newFile("This is no database, and longer than a page's head of it.") } }),
  migration_needed: () => withMeta({ schema: 1, min_reader: 1 }),
  inbox_too_new: () => withMeta({ schema: 99, min_reader: 99 }),
  async unsafe_location() {
    const store = await newInbox({ beat: null });
    chmodSync(dirname(store), 0o777);
    return { flags: { store } };
  },
  disk_full: async () => ({
    flags: { store: await newInbox() },
    around: { disk: { ...PLENTY, freeBytes: () => 1_000_000 } },
  }),
  no_receiver: async () => ({ flags: { store: await newInbox({ beat: null }) } }),
  worker_not_running: async () => ({ flags: { store: await pending(120_000) }, around: { clock: clockAt() } }),
  backlog: async () => {
    // Waits for a gap, so that no worker is missing.
    const event = outboundEvent("sent", "msg_1", { gapWaitMs: 4 * HOUR, signedAt: Date.now() - 2 * HOUR });
    const fill = async (store: Parameters<typeof handle>[0]) =>
      void (await store.step(turn<never>({ accepts: [{ ...event, occurredAt: Date.now() + 4 * HOUR }] })));
    return { flags: { store: await newInbox({ agoMs: 2 * HOUR, fill }) } };
  },
  dead_letters: () => filled(dead),
  quarantined: async () => {
    const kept = { reason: "invalid_json", slot: "current", scope: "any", signedAt: Date.now(), trace: null };
    const raw = Buffer.from("{");
    const quarantines = [{ ...kept, digest: Buffer.alloc(32), raw }];
    return {
      flags: {
        store: await newInbox({ fill: async (store) => void (await store.step(turn<never>({ quarantines }))) }),
      },
    };
  },
  signature_mismatch: () => counting({ "refused:signature_mismatch": 12 }),
  out_of_scope: () => counting({ "refused:out_of_scope": 12 }),
  already_parsed: () => counting({ "refused:already_parsed": 12 }),
  clock_skew: async () => ({ ...(await service(mended)), around: { clock: clockAt(600_000) } }),
  api_unreachable: async () => {
    const { flags } = await service(mended);
    return { flags: { ...flags, baseUrl: "http://127.0.0.1:9" } };
  },
  api_credentials: () => service(mended, { clientSecretFile: newFile("not-the-secret-of-the-client") }),
  api_setup: () => service(mended, { baseUrl: "http://api.example.com" }),
  webhook_disabled: () => webhook({ enabled: false }),
  webhook_unsigned: () => webhook({ enabled: true, signingEnabled: false }),
  webhook_without_target: () => webhook({ enabled: true, endpointUrl: null }),
  number_inactive: () => service(everyNumber({ status: "INACTIVE" })),
  number_without_sms: () => service(everyNumber({ smsEnabled: false })),
  number_without_campaign: () => service(everyNumber({ campaignRegId: null })),
  url_accepts_unsigned: () => answering(200),
  url_redirects: () => answering(308, { location: "/elsewhere" }),
  url_not_receiver: () => answering(404),
  url_failing: () => answering(502),
  url_unreachable: () => ({ flags: { url: "http://127.0.0.1:9/" } }),
  url_invalid: () => ({ flags: { url: "hooks.example.com" } }),
};

/** On loopback every address is fine only for a service that runs there too. */
const LOCAL = { baseUrl: "http://127.0.0.1:1", clientId: "cli_1" };

describe("oncehook doctor finds", () => {
  it.each(Object.keys(PROBLEMS))("%s, and says how to mend it", async (code) => {
    const { flags = {}, around } = (await PROBLEMS[code]?.()) ?? {};
    const isUrl = flags.url !== undefined;
    const findings = await diagnose(isUrl ? { ...LOCAL, ...flags } : flags, around);
    const problems = findings.filter(({ level }) => level === "problem");
    expect(problems.map((problem) => problem.code)).toEqual([code]);
    expect(problems[0]?.fix).toMatch(/\w{3}/);
    expect(JSON.stringify(findings)).not.toContain(SECRET);
  });

  it("webhooks and numbers that lead elsewhere than to --url", async () => {
    const url = "https://hooks.example.org/webhooks";
    const { flags } = await service(
      (emulator) => {
        mended(emulator);
        const [here, there] = emulator.control.numbers();
        emulator.control.updateNumber(here?.numberId ?? "", { webhookDeliveryOverride: url });
        emulator.control.updateNumber(there?.numberId ?? "", { webhookDeliveryOverride: "https://old.example.com/" });
      },
      { url },
    );
    const answer = async () => new Response('{"error":"unauthorized"}', { status: 401 });
    const fetch: typeof globalThis.fetch = (input, init) =>
      String(input).startsWith("https://") ? answer() : globalThis.fetch(input, init);
    const codes = (await diagnose(flags ?? {}, { fetch })).filter(({ level }) => level === "problem");
    expect(codes.map(({ code }) => code)).toEqual(["webhook_elsewhere", "webhook_elsewhere", "number_overridden"]);
  });

  it("a message blocked by a dead letter", async () => {
    const { flags = {} } = await filled((lease) => ({ ...dead(lease), onDead: "block" }) as never);
    const problems = (await diagnose(flags)).filter(({ level }) => level === "problem");
    expect(problems.map(({ code }) => code)).toEqual(["dead_letters", "blocked_lanes"]);
  });

  it.each([
    ["secret_line_break", () => ({ flags: { secretFile: newFile(`${SECRET}\n`) } })],
    ["secret_file_mode", () => ({ flags: { secretFile: newFile(SECRET, 0o644) } })],
    ["tolerance_short", async () => ({ flags: { store: await newInbox({ toleranceMs: 10 * 60_000 }) } })],
    [
      "ephemeral_disk",
      async () => ({ flags: { store: await newInbox() }, around: { disk: { ...PLENTY, typeOf: () => 0x01021994 } } }),
    ],
    [
      "disk_low",
      async () => ({ flags: { store: await newInbox() }, around: { disk: { ...PLENTY, freeBytes: () => 2 ** 28 } } }),
    ],
    [
      "file_mode",
      async () => {
        const store = await newInbox();
        chmodSync(store, 0o644);
        return { flags: { store } };
      },
    ],
    ["signature_mismatch", () => counting({ "slot:current": 20, "refused:signature_mismatch": 12 })],
    [
      "number_overridden",
      () =>
        service((emulator) => {
          mended(emulator);
          const { full } = emulator.fixtures.numbers;
          emulator.control.updateNumber(full, { webhookInboundOverride: "https://old.example.com/" });
        }),
    ],
    [
      "number_inactive",
      () => service((emulator) => void emulator.control.updateNumber("num_000002", { campaignRegId: "c" })),
    ],
  ] as [string, () => Case | Promise<Case>][])("%s, which may be meant so: a warning", async (code, prepare) => {
    const { flags = {}, around } = await prepare();
    const findings = await diagnose(flags, around);
    expect(findings.filter(({ level }) => level === "problem")).toEqual([]);
    expect(findings.filter(({ level }) => level === "warning").map((warning) => warning.code)).toContain(code);
  });
});

describe("oncehook doctor, where all is well,", () => {
  it("finds nothing, and has looked at everything", async () => {
    const receiver = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), logger: silentLogger });
    onTestFinished(() => receiver.stop());
    const url = await newServer(nodeWebhook(receiver.onAny(() => {})));
    const targets = { inboundUrl: url, deliveryUrl: url };
    const emulator = await createEmulator({
      logger: silentLogger,
      ...targets,
      unspecified: { "webhooks.exposeEndpointUrl": true },
    });
    onTestFinished(() => emulator.close());
    mended(emulator);
    const store = await newInbox({ fill: (inbox) => handle(inbox, [outboundEvent("queued", "msg_1")], handled) });
    const { url: baseUrl, clientId, clientSecret } = emulator;
    const api = { baseUrl, clientId, clientSecretFile: newFile(clientSecret) };
    const findings = await diagnose({ ...api, url, store, secretFile: newFile(SECRET) });
    expect(findings.filter(({ level }) => level !== "ok")).toEqual([]);
    expect(findings.map(({ code }) => code)).toEqual([
      ...["node", "packages", "secret", "disk", "store", "durability", "receivers", "worker", "keyring", "inbox"],
      ...["retries", "api", "clock", "webhook_inbound", "webhook_delivery", "numbers", "url"],
    ]);
    expect(JSON.stringify(findings)).not.toMatch(/\+1206|whsec/);
  });

  it("says what it could not look at, and what lets it", async () => {
    const findings = await diagnose({});
    const skipped = findings.filter(({ level }) => level === "skipped");
    expect(skipped.map(({ code, fix }) => [code, fix?.split(" ")[0]])).toEqual([
      ["secret", "--secret-file"],
      ["store", "--store"],
      ["api", "--base-url,"],
      ["url", "--url"],
    ]);
  });
});
