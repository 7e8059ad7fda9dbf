/** Effects whose error has a code that looks like a state of Postgres's, and is none: of their own connection, or of something else. */
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/internal/logger.ts";
import type { PgClient, PgQuery, PgResult } from "../../src/stores/postgres.ts";
import { complete, leases, openDesk, openDeskOn, settle } from "./desk.ts";
import { newPool } from "./place.ts";
import { askClosed, makeRelay } from "./relay.ts";

const endedByOther = () => Object.assign(new Error("This socket has been ended by the other party"), { code: "EPIPE" });

describe("an effect whose connection's socket is closed when it writes", () => {
  it("runs again, and no word of that is told as the server's", async () => {
    const lines: unknown[] = [];
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) };
    const relay = await makeRelay();
    await relay.start();
    const { store, notes, write } = await openDeskOn(newPool({ connectionString: relay.url, max: 1 }), { logger });
    const [lease] = await leases(store, "m");
    const causes: unknown[] = [];
    const unlucky = async (client: PgClient) => {
      await write("m")(client);
      if (causes.length > 0) return;
      await askClosed(relay, client, () => client.query("select 1")).catch((cause) => {
        causes.push(cause);
        throw cause;
      });
    };
    expect(await settle(store, complete(lease, unlucky))).toEqual([{ status: "settled" }]);
    expect(causes).toMatchObject([{ code: "EPIPE" }]);
    expect(await notes()).toEqual(["m"]);
    expect(lines).toEqual([{ code: "effects_interrupted", sqlState: null }]);
  });

  it("is not blamed when it is so at each commit", async () => {
    const pool = newPool({ max: 1 });
    let isCut = false;
    pool.on("connect", (client) => {
      const query: (...asked: readonly unknown[]) => Promise<PgResult> = client.query.bind(client) as never;
      client.query = ((...asked: readonly [PgQuery | string]) => {
        const [first] = asked;
        if (!isCut || typeof first === "string" || !first.text.endsWith("commit")) return query(...asked);
        isCut = false;
        return Promise.reject(endedByOther());
      }) as never;
    });
    const { store, notes, write } = await openDeskOn(pool);
    const [lease] = await leases(store, "m");
    let runs = 0;
    const unlucky = async () => {
      isCut = ++runs <= 6;
    };
    expect(await settle(store, complete(lease, write("m"), unlucky))).toEqual([{ status: "settled" }]);
    expect(runs).toBe(7);
    expect(await notes()).toEqual(["m"]);
  });
});

describe("an effect has failed", () => {
  it.each([
    ["resets it", Object.assign(new Error("socket hang up"), { code: "ECONNRESET" })],
    ["closed its socket", Object.assign(new Error("write EPIPE"), { code: "EPIPE", errno: -32, syscall: "write" })],
    ["ended its socket", endedByOther()],
  ])("whose other service %s", async (_what, error) => {
    const { store } = await openDesk();
    const [lease] = await leases(store, "m");
    const calls = complete(lease, () => Promise.reject(error));
    expect(await settle(store, calls)).toEqual([{ status: "effect_failed", error }]);
  });

  it.each(["E0001", "EPIPE"])("whose trigger calls its error %s", async (code) => {
    const { store } = await openDesk();
    const [lease] = await leases(store, "m");
    const raise = (client: PgClient) => client.query(`do $$ begin raise exception sqlstate '${code}'; end $$`);
    expect(await settle(store, complete(lease, raise))).toMatchObject([{ status: "effect_failed", error: { code } }]);
  });
});
