/** An address that leads to a standby for a while, as DNS or a proxy does at a failover: no connection to it is kept. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { outbound } from "../../receiver/events.ts";
import { createSealing, SLOTS } from "../sqlite-secrets-place.ts";
import { contextOf } from "../sqlite-turns.ts";
import { openAt } from "./desk.ts";
import { newPool, secretsIn, serve, sql, until } from "./place.ts";
import { makeRelay, type Relay } from "./relay.ts";
import { type PostgresServer, startPostgres, startStandby } from "./server.ts";

let primary: PostgresServer;
let standby: Pick<PostgresServer, "url" | "stop">;

beforeAll(async () => {
  primary = await startPostgres();
  standby = await startStandby(primary);
});

afterAll(async () => {
  await standby.stop();
  await primary.stop();
});

async function startRelay(): Promise<Relay> {
  const relay = await makeRelay(primary.url);
  await relay.start();
  return relay;
}

/** The old connections break, and new ones lead to the standby. */
function failOver(relay: Relay): void {
  relay.leadTo(standby.url);
  relay.reset();
}

const refused = { code: "store_unavailable", fields: { sqlState: "25006" } };

describe("an address that leads to a standby for a while", () => {
  it.each<[string, (url: string) => string | PgPool]>([
    ["a connection string", (url) => url],
    ["a pool of the application's own", (url) => newPool({ connectionString: url })],
  ])("%s: deliveries get 503 meanwhile, and 200 as soon as it is over", async (name, databaseAt) => {
    const relay = await startRelay();
    const schema = name.replaceAll(/\W/g, "_").toLowerCase();
    const { receiver, post } = await serve(postgresStore(databaseAt(relay.url), { schema }));
    receiver.onAny((_event, ctx) => ctx.commit((client) => client.query("select 1")));
    await receiver.start();
    const deliver = async (count: number) => {
      const statuses = new Set<number>();
      for (let sent = 0; sent < count; sent++) {
        statuses.add(await post(outbound("queued", { messageId: `${performance.now()}` })));
      }
      return [...statuses];
    };
    const hasHandledAll = async () => (await receiver.inbox.stats()).gauges.pending === 0;
    expect(await deliver(3)).toEqual([200]);
    // A claim whose answer the reset cuts off keeps its lease for 30 s.
    await until(hasHandledAll);
    failOver(relay);
    expect(await deliver(10)).toEqual([503]);
    relay.leadTo(primary.url);
    expect(await deliver(30)).toEqual([200]);
    await until(() => relay.connectionsTo(standby.url) === 0);
    await until(hasHandledAll);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 33, handled: 33 });
  });

  it("reads nothing from it, which may be behind for any time", async () => {
    const relay = await startRelay();
    const store = await openAt("reads", newPool({ connectionString: relay.url }));
    failOver(relay);
    await expect(store.stats()).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(store.stats()).rejects.toMatchObject(refused);
    relay.leadTo(primary.url);
    expect((await store.stats()).counters).toMatchObject({ accepted: 0 });
  });

  it("is no place to read secrets from: one that was replaced would stay in use", async () => {
    const relay = await startRelay();
    const secrets = secretsIn({ schema: "rotated", sealing: createSealing() }, relay.url);
    await secrets.write("inbound", SLOTS, 0);
    failOver(relay);
    await sql("select pg_wal_replay_pause()", standby.url);
    onTestFinished(() => sql("select pg_wal_replay_resume()", standby.url).then(() => {}));
    await expect(secrets.read("inbound")).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(secrets.read("inbound")).rejects.toMatchObject(refused);
    relay.leadTo(primary.url);
    expect(await secrets.read("inbound")).toMatchObject({ revision: 1 });
  });

  it("is no place to open an inbox, until it leads to the primary", async () => {
    const relay = await startRelay();
    relay.leadTo(standby.url);
    const store = postgresStore(relay.url, { schema: "opened" });
    await expect(store.open(contextOf())).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/connect to the primary/),
    });
    relay.leadTo(primary.url);
    await store.open(contextOf());
    await store.close();
  });
});
