/** What a build without secrets may make, and what fails in it all the same. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { drainRoute } from "../../adapters/next.ts";
import { createReceiver, createVerifier, type Keyring, SetupError } from "../../src/index.ts";
import { createClient } from "../../src/messaging/client/index.ts";
import { compileInBuild } from "../../src/sources/keys.ts";
import { STRICT_RULES } from "../../src/sources/secret.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { postgresSecrets, postgresStore } from "../../src/stores/postgres.ts";
import { sqliteSecrets } from "../../src/stores/sqlite.ts";
import { httpPublisher } from "../../src/tools/forward/index.ts";
import { memoryReceiver, recordingLogger, SECRET, signedEvent } from "../adapters/receivers.ts";
import { incoming } from "../receiver/bench.ts";
import { inbound } from "../receiver/events.ts";

const build = () => vi.stubEnv("NEXT_PHASE", "phase-production-build");
beforeEach(() => void build());
afterEach(() => void vi.unstubAllEnvs());

const unset = "";
const store = () => memoryStore({ volatile: true });
const withSecrets = (secrets: unknown) => createReceiver({ secrets: secrets as Keyring, store: store() });
const { receiver } = memoryReceiver();
const key = { keyFile: "/not/there/webhook.key" };
const credentials = { baseUrl: "https://api.example.com", clientId: "cli_1", clientSecret: "s" };

describe("in next build, a secret that is not set", () => {
  it.each<[string, () => unknown]>([
    ["createReceiver", () => withSecrets(unset)],
    ["createReceiver, undefined", () => withSecrets(undefined)],
    ["createReceiver, of one kind", () => withSecrets({ inbound: SECRET, delivery: unset })],
    ["createReceiver, of a set", () => withSecrets({ current: [undefined], next: SECRET })],
    ["createReceiver, with its encoding", () => withSecrets({ secret: undefined, encoding: "hex" })],
    ["createVerifier", () => createVerifier({ secrets: unset })],
    ["drainRoute", () => drainRoute(receiver, { secret: undefined })],
    ["sqliteSecrets", () => sqliteSecrets("inbox.db", key)],
    ["postgresSecrets", () => postgresSecrets(unset, key)],
    ["postgresStore", () => postgresStore(unset)],
    ["httpPublisher", () => httpPublisher({ url: unset, secret: unset })],
    ["createClient", () => createClient({ baseUrl: unset, clientId: unset, clientSecret: unset })],
  ])("does not fail %s, which fails without it anywhere else", (_maker, make) => {
    expect(make).not.toThrow();
    vi.unstubAllEnvs();
    expect(make).toThrow(SetupError);
  });

  it.each<[string, () => unknown]>([
    ["a short secret", () => withSecrets({ inbound: "short", delivery: unset })],
    ["a secret store without anything", () => withSecrets({})],
    ["a misspelt kind", () => withSecrets({ inbound: unset, deliverry: unset })],
    [
      "an unsigned kind of a verifier",
      () => createVerifier({ secrets: { inbound: unset, delivery: "dangerouslyUnsigned" } }),
    ],
    ["a short secret of a cron", () => drainRoute(receiver, { secret: "short" })],
    ["another option of drainRoute", () => drainRoute(receiver, { secret: undefined, budgetMs: 0 })],
    ["a short secret of a publisher", () => httpPublisher({ url: "http://127.0.0.1/", secret: "short" })],
    ["another option of a client", () => createClient({ ...credentials, clientSecret: unset, maxRetries: -1 })],
    ["a wrong address of a client", () => createClient({ ...credentials, clientSecret: unset, baseUrl: "api" })],
    ["a wrong connection string", () => postgresStore("mysql://db/app")],
    ["a wrong schema", () => postgresStore(unset, { schema: "pg_x" })],
    ["both a key file and a sealing missing", () => sqliteSecrets("inbox.db", {} as never)],
  ])("still fails at construction: %s", (_mistake, make) => {
    expect(make).toThrow(SetupError);
  });

  it("is reported at the first use, by each of them", async () => {
    const { logger, lines } = recordingLogger();
    const receiver = createReceiver({ secrets: unset, store: store(), logger });
    const { status } = await receiver.handle(incoming(JSON.stringify(inbound()), Date.now()));
    expect([status, lines.at(-1)]).toMatchObject([500, { fields: { code: "invalid_secret" } }]);
    expect(lines.at(-1)?.message).toContain("environment variable");

    const verify = createVerifier({ secrets: unset, logger });
    const { answer } = (await verify(incoming(JSON.stringify(inbound()), Date.now()))) as {
      answer: { status: number };
    };
    expect(answer.status).toBe(500);

    const bearer = new Request("http://a.example/cron", { headers: { authorization: "Bearer " } });
    expect((await drainRoute(receiver, { secret: unset }).GET(bearer)).status).toBe(500);

    const client = createClient({ ...credentials, clientId: unset });
    await expect(client.whoami()).rejects.toThrow('Option "clientId" is missing');
    const message = { body: Buffer.from("{}"), headers: {}, signal: AbortSignal.timeout(1_000), attempt: 1 } as never;
    await expect(httpPublisher({ url: "http://127.0.0.1/", secret: unset }).publish(message)).rejects.toThrow(
      SetupError,
    );
    const pool = postgresStore(unset);
    await expect(pool.open({ clock: receiver.clock } as never)).rejects.toThrow("must be a connection string");
  });

  it("is used at once where it is set in a build too", async () => {
    const { receiver, handled } = memoryReceiver();
    const { body, headers } = signedEvent();
    const { status } = await receiver.handle({ ...incoming(body, Date.now()), headers });
    expect([status, handled]).toEqual([200, ["message.inbound"]]);
  });
});

describe("compileInBuild(), in next build", () => {
  const slots = (keyring: unknown) =>
    compileInBuild(keyring, STRICT_RULES, Date.now()).keys.map(
      ({ grants: [grant] }) => `${grant?.slot} ${grant?.kind}`,
    );

  it.each<[string, unknown, string[]]>([
    ["a keyring", "", []],
    ["each secret that is not set", { current: "", previous: "", next: SECRET }, ["next null"]],
    ["each of a list", { current: ["", undefined, SECRET], previous: [null] }, ["current null"]],
    ["a kind", { inbound: undefined, delivery: SECRET }, ["current delivery"]],
    [
      "a secret with its encoding",
      { inbound: { secret: "", encoding: "hex" }, delivery: SECRET },
      ["current delivery"],
    ],
    [
      "a replaced secret",
      { current: SECRET, previous: { secret: "", validUntil: Date.now() + 1_000 } },
      ["current null"],
    ],
  ])("leaves out %s", (_what, keyring, expected) => {
    expect(slots(keyring)).toEqual(expected);
  });

  it.each<[string, unknown, RegExp]>([
    ["a tenant that is empty", { secret: SECRET, tenant: "" }, /"secrets.tenant" must be a text/],
    ["an empty list", { current: [] }, /is an empty list/],
    ["a set without a current secret", { next: "" }, /"secrets.current" must be a secret/],
    ["one kind alone", { inbound: "" }, /"secrets.delivery" is missing/],
    ["a next secret that is too short", { current: "", next: "short" }, /"secrets.next" is 5 bytes long/],
    ["white space", "  ", /holds nothing but white space/],
  ])("checks all that is set: %s", (_what, keyring, message) => {
    expect(() => slots(keyring)).toThrow(message);
  });

  it("leaves nothing out anywhere else", () => {
    vi.unstubAllEnvs();
    expect(() => slots({ current: "", next: SECRET })).toThrow(/"secrets.current" is an empty text/);
  });
});
