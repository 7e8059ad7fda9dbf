/** Prepared misconfigurations, each in a place where all else is well: real files, real inboxes, the emulator. */
import { chmodSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeWebhook } from "../../../../adapters/node.ts";
import type { InboxStore } from "../../../../src/inbox/store.ts";
import { createReceiver } from "../../../../src/index.ts";
import type { Clock } from "../../../../src/internal/clock.ts";
import { silentLogger } from "../../../../src/internal/logger.ts";
import type { WebhookDefaults } from "../../../../src/messaging/client/index.ts";
import { createEmulator } from "../../../../src/messaging/emulator/index.ts";
import { memoryStore } from "../../../../src/stores/memory.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import { contextOf } from "../../../stores/sqlite-turns.ts";
import { becomeLater } from "../../../support/later-version.ts";
import { dead, handle, handled, outboundEvent } from "../inbox-place.ts";
import { newFile, newFolder, newServer } from "../place.ts";
import {
  altering,
  answering,
  type Case,
  counting,
  everyNumber,
  filled,
  leased,
  mended,
  pending,
  quarantined,
  refusing,
  service,
  TARGET,
  twoKeyrings,
  waiting,
  webhook,
  withMeta,
  withPackage,
} from "./cases.ts";
import { clockAt, diagnose, newInbox, PLENTY, SECRET } from "./scene.ts";

/** An inbox on such a disk. */
const onDisk = async (disk: Partial<typeof PLENTY>): Promise<Case> => {
  return { flags: { store: await newInbox() }, around: { disk: { ...PLENTY, ...disk } } };
};

/** By the code that must be found, as the only problem. */
const PROBLEMS: Readonly<Record<string, () => Case | Promise<Case>>> = {
  // Beside a driver that does not crash there.
  node_too_old: () => ({ around: withPackage("better-sqlite3", "12.11.1", "18.20.4") }),
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
  async migration_needed() {
    const store = await newInbox();
    onTestFinished(becomeLater());
    return { flags: { store } };
  },
  inbox_too_new: () => withMeta({ schema: 99, min_reader: 99 }),
  async unsafe_location() {
    const store = await newInbox({ beat: null });
    chmodSync(dirname(store), 0o777);
    return { flags: { store } };
  },
  disk_full: () => onDisk({ freeBytes: () => 1_000_000 }),
  no_receiver: async () => ({ flags: { store: await newInbox({ beat: null }) } }),
  worker_not_running: async () => ({ flags: { store: await pending(120_000) }, around: { clock: clockAt() } }),
  // Waits for a gap, so that no worker is missing.
  backlog: async () => ({ flags: { store: await waiting(2 * 3_600_000) } }),
  dead_letters: () => filled(dead),
  quarantined: async () => ({ flags: { store: await quarantined() } }),
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
  api_invalid_response: async () => ({
    ...(await service(mended)),
    around: { fetch: altering("/webhooks", () => ({})) },
  }),
  webhook_disabled: () => webhook({ enabled: false }),
  async webhook_without_secret() {
    const spoilt = ({ defaults, ...body }: WebhookDefaults) => {
      return { ...body, defaults: { ...defaults, inbound: { ...defaults.inbound, hasCurrentSecret: false } } };
    };
    return { ...(await service(mended)), around: { fetch: altering("/webhooks", spoilt) } };
  },
  webhook_unsigned: () => webhook({ enabled: true, signingEnabled: false }),
  webhook_without_target: () => webhook({ enabled: true, endpointUrl: null }),
  client_inactive: async () => {
    const suspended = (body: object) => ({ ...body, apiClientStatus: "SUSPENDED" });
    return { ...(await service(mended)), around: { fetch: altering("/whoami", suspended) } };
  },
  no_numbers: () =>
    service(({ control }) => {
      for (const { numberId } of control.numbers()) control.updateNumber(numberId, { apiClientId: "ac_other" });
    }),
  number_inactive: () => service(everyNumber({ status: "INACTIVE" })),
  number_without_sms: () => service(everyNumber({ smsEnabled: false })),
  number_without_campaign: () => service(everyNumber({ campaignRegId: null })),
  url_accepts_unsigned: () => answering(200),
  url_redirects: () => answering(308, { location: "/elsewhere" }),
  url_not_receiver: () => answering(404),
  url_failing: () => answering(502),
  url_unreachable: () => ({ flags: { url: "http://127.0.0.1:9/" } }),
  url_private: () => ({ flags: { url: "https://10.0.0.7/webhooks" }, around: { fetch: refusing } }),
  url_insecure: () => ({ flags: { url: "http://hooks.example.com/webhooks" }, around: { fetch: refusing } }),
  url_invalid: () => ({ flags: { url: "hooks.example.com" } }),
};

/** On loopback every address is fine only for a service that runs there too. */
const LOCAL = { baseUrl: "http://127.0.0.1:1", clientId: "cli_1" };

describe("oncehook doctor finds", () => {
  it.each(Object.keys(PROBLEMS))("%s, and says how to mend it", async (code) => {
    const { flags = {}, around } = (await PROBLEMS[code]?.()) ?? {};
    const isUrl = flags.url !== undefined && around?.fetch === undefined;
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
    const fetch: typeof globalThis.fetch = (input, init) =>
      String(input).startsWith("https://") ? refusing() : globalThis.fetch(input, init);
    const codes = (await diagnose(flags ?? {}, { fetch })).filter(({ level }) => level === "problem");
    expect(codes.map(({ code }) => code)).toEqual(["webhook_elsewhere", "webhook_elsewhere", "number_overridden"]);
  });

  it.each([
    ["bytes that are no text", Buffer.alloc(32, 0xff), "is not UTF-8 text"],
    ["more than a secret has", "s".repeat(65_537), "larger than 64 KiB"],
  ])("a file of a secret with %s", async (_, content, what) => {
    const problems = (await diagnose({ secretFile: newFile(content) })).filter(({ level }) => level === "problem");
    const fix = expect.stringContaining("openssl rand -hex 32");
    expect(problems).toEqual([
      expect.objectContaining({ code: "secret_unreadable", what: expect.stringContaining(what), fix }),
    ]);
  });

  it("a user name in --url, and does not blame the network", async () => {
    const findings = await diagnose({ url: "https://ann:hunter2@hooks.example.com/webhooks" }, { fetch: refusing });
    const problems = findings.filter(({ level }) => level === "problem");
    expect(problems.map(({ code }) => code)).toEqual(["url_invalid"]);
    expect(problems[0]?.what).toMatch(/^https:\/\/hooks\.example\.com has a user name/);
  });

  it("no worker behind a lease that has run out, or whose receiver is gone", async () => {
    for (const store of [await leased(60_000), await leased(100_000, 3_600_000, null)]) {
      const findings = await diagnose({ store }, { clock: clockAt() });
      expect(findings.map(({ code }) => code)).toContain("worker_not_running");
    }
  });

  it("that a worker may be paused, where a receiver reports", async () => {
    const receivers = [await pending(120_000), await pending(120_000, null)];
    const findings = await Promise.all(receivers.map((store) => diagnose({ store }, { clock: clockAt() })));
    const fixes = findings.map((all) => all.find(({ code }) => code === "worker_not_running")?.fix);
    expect(fixes).toEqual([
      expect.stringContaining("receiver.health()"),
      expect.stringMatching(/^Call receiver\.start\(\)/),
    ]);
  });

  it("a message blocked by a dead letter", async () => {
    const { flags = {} } = await filled((lease) => ({ ...dead(lease), onDead: "block" }) as never);
    const problems = (await diagnose(flags)).filter(({ level }) => level === "problem");
    expect(problems.map(({ code }) => code)).toEqual(["dead_letters", "blocked_lanes"]);
  });

  const WARNINGS: Readonly<Record<string, () => Case | Promise<Case>>> = {
    secret_line_break: () => ({ flags: { secretFile: newFile(`${SECRET}\n`) } }),
    secret_file_mode: () => ({ flags: { secretFile: newFile(SECRET, 0o644) } }),
    secret_file_owner: () => ({ flags: { secretFile: newFile(SECRET, 0o620) } }),
    webhooks_hidden: () => service(mended, {}, { "webhooks.routes": "404" }),
    url_not_receiver: () => {
      return { flags: { url: TARGET }, around: { fetch: async () => new Response("Log in", { status: 401 }) } };
    },
    keyrings_differ: twoKeyrings,
    tolerance_short: async () => ({ flags: { store: await newInbox({ toleranceMs: 10 * 60_000 }) } }),
    ephemeral_disk: () => onDisk({ typeOf: () => 0x01021994 }),
    disk_low: () => onDisk({ freeBytes: () => 2 ** 28 }),
    async file_mode() {
      const store = await newInbox();
      chmodSync(store, 0o644);
      return { flags: { store } };
    },
    signature_mismatch: () => counting({ "slot:service:current": 20, "refused:signature_mismatch": 12 }),
    number_overridden: () =>
      service((emulator) => {
        mended(emulator);
        const { full } = emulator.fixtures.numbers;
        emulator.control.updateNumber(full, { webhookInboundOverride: "https://old.example.com/" });
      }),
    number_inactive: () => service(({ control }) => void control.updateNumber("num_000002", { campaignRegId: "c" })),
  };

  it.each(Object.keys(WARNINGS))("%s, which may be meant so: a warning", async (code) => {
    const { flags = {}, around } = (await WARNINGS[code]?.()) ?? {};
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
    const unspecified = { "webhooks.exposeEndpointUrl": true };
    const emulator = await createEmulator({ logger: silentLogger, ...targets, unspecified });
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

  it("misses no worker where one is at work while it watches", async () => {
    const path = await pending(120_000);
    const store = sqliteStore(path) as InboxStore<never>;
    await store.open(contextOf({ rules: "recorded" }));
    onTestFinished(() => store.close());
    const clock: Clock = {
      ...clockAt(),
      setTimeout(callback) {
        void handle(store, [], handled).then(callback);
        return { cancel() {}, keepAlive() {} };
      },
    };
    const levels = (await diagnose({ store: path }, { clock })).filter(({ code }) => code === "worker");
    expect(levels.map(({ what }) => what)).toEqual(["Events that are due are being handled."]);
  });

  it("misses no worker whose handlers are all busy", async () => {
    const findings = await diagnose({ store: await leased(0) }, { clock: clockAt() });
    const said = findings.filter(({ code }) => code.startsWith("worker"));
    expect(said.map(({ what }) => what)).toEqual(["Events that are due wait for handlers that are busy."]);
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
