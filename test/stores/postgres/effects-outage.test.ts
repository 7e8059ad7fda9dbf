/**
 * Connections that break under an effect, or while its commit is under way: no failure of the handler's, and nothing twice. An error of
 * something else may have a code that looks like it.
 */
import { describe, expect, it, onTestFinished } from "vitest";
import type { Effect, EffectFunction } from "../../../src/inbox/store.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { outbound } from "../../receiver/events.ts";
import { complete, failed, makeNotes, openDesk, openHandling, SETTLED, UNFINISHED } from "./desk.ts";
import { type Connection, newPool, serve, sql, tapped, until } from "./place.ts";
import { askClosed, makeRelay } from "./relay.ts";

/** What Node says where the other side has ended the socket: without a system call. */
const ENDED_BY_OTHER = "This socket has been ended by the other party";

const terminate = (client: PgClient) => sql(`select pg_terminate_backend(${(client as Connection).processID})`);

/** Writes, and loses its connection the first time it runs. */
function interrupted(write: EffectFunction<PgClient>, lose: (client: PgClient) => unknown): EffectFunction<PgClient> {
  let runs = 0;
  return async (client) => {
    await write(client);
    if (runs++ === 0) await lose(client);
  };
}

/** A pool of one connection, whose server accepts no writes while `isOn`. */
function readOnlyPool() {
  const pool = newPool({ max: 1 });
  const server = { isOn: false, connections: 0 };
  pool.on("connect", (client) => {
    server.connections += 1;
    if (server.isOn) void client.query("set default_transaction_read_only = on");
  });
  const setReadOnly = async () => {
    server.isOn = true;
    await pool.query("set default_transaction_read_only = on");
  };
  return { pool, server, setReadOnly };
}

describe("an effect whose connection breaks", () => {
  it("does not use up its event's last attempt, and runs again without its handler", async () => {
    const { schema, notes, write } = await makeNotes();
    const { receiver, post } = await serve(postgresStore(newPool(), { schema }), { maxAttempts: 1 });
    let runs = 0;
    receiver.onAny((_event, ctx) => {
      const lose = (client: PgClient) => terminate(client).then(() => client.query("select 1"));
      ctx.commit(interrupted(write(`run ${++runs}`), lose));
    });
    await receiver.start();
    expect(await post(outbound("queued"))).toBe(200);
    await until(async () => (await receiver.inbox.stats()).gauges.pending === 0);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ handled: 1, retried: 0, deadLettered: 0 });
    expect(await notes()).toEqual(["run 1"]);
  });

  const slept = (client: PgClient) => client.query("select pg_sleep(20)");
  const hides = () => Promise.reject(new Error("The order could not be saved."));

  it.each<[string, (client: PgClient) => Promise<unknown>]>([
    ["that tells it", slept],
    ["that hides it behind an error of its own", (client) => slept(client).catch(hides)],
    ["that forgets it", (client) => slept(client).catch(() => {})],
  ])("is unfinished: one %s", async (_name, wait) => {
    const { store, leases, settle, notes, write } = await openDesk();
    const [a, b] = await leases("a", "b");
    const lose = (client: PgClient) => Promise.all([wait(client), terminate(client)]);
    const broken = complete(a, interrupted(write("a"), lose));
    // The neighbour, and the turn they are in, are none the worse.
    expect(await settle(broken, complete(b, write("b")))).toEqual([SETTLED, SETTLED]);
    expect(await notes()).toEqual(["a", "b"]);
    expect((await store.stats()).counters).toMatchObject({ handled: 2 });
  });

  it("is told to the log each time, without a word of the error's", async () => {
    const lines: unknown[] = [];
    const logger = { ...silentLogger, warn: (fields: object, message: string) => void lines.push([fields, message]) };
    const { end, notes, write } = await openHandling(newPool(), { logger });
    let runs = 0;
    const unlucky = async (client: PgClient) => {
      await write("m")(client);
      if (++runs <= 3) await Promise.all([client.query("select '+15550100', pg_sleep(20)"), terminate(client)]);
    };
    expect(await end(unlucky)).toEqual([SETTLED]);
    expect(await notes()).toEqual(["m"]);
    const line = [{ code: "effects_interrupted", sqlState: "57P01" }, expect.stringMatching(/run again/)];
    expect(lines).toEqual([line, line, line]);
  });

  const declared = (text: string, schema: string) => ({
    text: `insert into public.${schema}_note values ($1)`,
    values: [text],
  });

  it.each<[string, (text: string, schema: string) => Effect<PgClient>]>([
    ["a function", (text, schema) => (client) => client.query(declared(text, schema))],
    ["declared", declared],
  ])("does not use the connection again that led to a server that takes no writes: %s", async (_name, effectOf) => {
    const { pool, server, setReadOnly } = readOnlyPool();
    const { schema, end, notes } = await openHandling(pool);
    await setReadOnly();
    server.isOn = false;
    const before = server.connections;
    expect(await end(effectOf("m", schema))).toEqual([SETTLED]);
    expect(await notes()).toEqual(["m"]);
    expect(server.connections).toBe(before + 1);
  });

  it("is unfinished on a server whose disk is full", async () => {
    const { schema, leases, ask, settle, notes, write } = await openDesk(newPool({ application_name: "full" }));
    await sql(`create function ${schema}.refuse() returns event_trigger language plpgsql as $$ begin
        if current_setting('application_name') = 'full' then raise exception sqlstate '53100'; end if; end $$;
      create event trigger ${schema} on ddl_command_start when tag in ('CREATE TABLE AS') execute function ${schema}.refuse()`);
    const [lease] = await leases("m");
    const full = interrupted(write("m"), (client) =>
      client.query("do $$ begin raise exception sqlstate '53100'; end $$"),
    );
    expect(await ask(complete(lease, full))).toEqual([UNFINISHED]);
    expect(await settle(complete(lease, full))).toEqual([SETTLED]);
    expect(await notes()).toEqual(["m"]);
  });

  it("waits with others while the server takes no writes, however often it is tried, and Node suspects no leak", async () => {
    const warnings: string[] = [];
    const hear = ({ name }: Error) => void warnings.push(name);
    process.on("warning", hear);
    onTestFinished(() => void process.off("warning", hear));
    const { pool, server, setReadOnly } = readOnlyPool();
    const { leases, ask, settle, notes, write } = await openDesk(pool);
    const ids = Array.from({ length: 12 }, (_, index) => `m${10 + index}`);
    const refused = (await leases(...ids)).map((lease, index) => complete(lease, write(ids[index] ?? "")));
    await setReadOnly();
    // From its second interruption on an effect waits before it is tried again. One that broke each time would have failed by the sixth.
    for (let time = 1; time <= 4; time++) expect(await ask(...refused)).toEqual(ids.map(() => UNFINISHED));
    for (let time = 5; time <= 7; time++) expect(await ask(...refused.slice(0, 1))).toEqual([UNFINISHED]);
    server.isOn = false;
    expect(await settle(...refused)).toEqual(ids.map(() => SETTLED));
    expect(await notes()).toEqual(ids);
    expect(warnings).not.toContain("MaxListenersExceededWarning");
  });

  it("has failed when it breaks each time: it is the effect then, which delays no other event for ever (I7, I9)", async () => {
    const { lease, settle, end, notes, write } = await openHandling();
    let runs = 0;
    const poisonous = async (client: PgClient) => {
      await write(`run ${++runs}`)(client);
      await Promise.all([client.query("select pg_sleep(20)"), terminate(client)]);
    };
    expect(await end(poisonous)).toMatchObject([failed({ code: "57P01" })]);
    expect(runs).toBe(5);
    expect(await notes()).toEqual([]);
    // The next attempt begins anew.
    const again = complete(lease, interrupted(write("later"), terminate));
    expect(await settle(again)).toEqual([SETTLED]);
  });

  it("has failed when its completion is refused each time after it", async () => {
    const { schema, leases, settle, notes, write } = await openDesk();
    const [lease, other] = await leases("m", "other");
    await sql(`create function ${schema}.refuse() returns trigger language plpgsql as $$ begin
        if new.id = ${lease?.event} then raise exception sqlstate 'P0001'; end if; return new; end $$;
      create trigger refuse before update on ${schema}.event for each row execute function ${schema}.refuse()`);
    const settled = await settle(complete(lease, write("m")), complete(other, write("other")));
    expect(settled).toMatchObject([failed({ code: "P0001" }), SETTLED]);
    expect(await notes()).toEqual(["other"]);
  });

  it("has failed when a deferred constraint of its breaks the connection each time (I7, I9)", async () => {
    const { schema, lease, settle, notes, write } = await openHandling();
    await sql(`create function ${schema}.part() returns trigger language plpgsql as $$ begin
        perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); return null; end $$;
      create constraint trigger part after insert on public.${schema}_note deferrable initially deferred
        for each row execute function ${schema}.part()`);
    let runs = 0;
    const poisonous = complete(lease, (client) => write(`run ${++runs}`)(client));
    expect(await settle(poisonous)).toMatchObject([failed({ code: "57P01" })]);
    // The first one's commit was sent together with the check, so that either could have been interrupted.
    expect(runs).toBe(6);
    expect(await notes()).toEqual([]);
  });

  it.each([
    ["database takes no writes", { code: "25006" }],
    ["database's disk is full", { code: "53100" }],
    ["service refuses it", { errno: -111, syscall: "connect" }],
    ["service resets it", { code: "ECONNRESET" }],
    ["service closed its socket", { code: "EPIPE", errno: -32, syscall: "write" }],
    ["service ended its socket", { code: "EPIPE", message: ENDED_BY_OTHER }],
  ])("is not what an effect has whose other %s", async (_what, fields) => {
    const { end } = await openHandling();
    const error = Object.assign(new Error("of another service"), fields);
    const calls = () => Promise.reject(error);
    expect(await end(calls)).toEqual([failed(error)]);
  });

  it.each(["E0001", "EPIPE"])("is not what an effect has whose trigger calls its error %s", async (code) => {
    const { end } = await openHandling();
    const raise = (client: PgClient) => client.query(`do $$ begin raise exception sqlstate '${code}'; end $$`);
    expect(await end(raise)).toMatchObject([failed({ code })]);
  });

  it("runs again when the server's socket was closed before it wrote, and no word of that is told as the server's", async () => {
    const lines: unknown[] = [];
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) };
    const relay = await makeRelay();
    await relay.start();
    const { end, notes, write } = await openHandling(newPool({ connectionString: relay.url, max: 1 }), { logger });
    const causes: unknown[] = [];
    const unlucky = async (client: PgClient) => {
      await write("m")(client);
      if (causes.length > 0) return;
      await askClosed(relay, client, () => client.query("select 1")).catch((cause) => {
        causes.push(cause);
        throw cause;
      });
    };
    expect(await end(unlucky)).toEqual([SETTLED]);
    expect(causes).toMatchObject([{ code: "EPIPE" }]);
    expect(await notes()).toEqual(["m"]);
    expect(lines).toEqual([{ code: "effects_interrupted", sqlState: null }]);
  });

  it("is not blamed when the socket is closed at each commit", async () => {
    const pool = newPool({ max: 1 });
    let isCut = false;
    tapped(pool, (asked, send) => {
      if (!isCut || !asked.text.endsWith("commit")) return send();
      isCut = false;
      return Promise.reject(Object.assign(new Error(ENDED_BY_OTHER), { code: "EPIPE" }));
    });
    const { end, notes, write } = await openHandling(pool);
    let runs = 0;
    const unlucky = () => {
      isCut = ++runs <= 6;
    };
    expect(await end(write("m"), unlucky)).toEqual([SETTLED]);
    expect(runs).toBe(7);
    expect(await notes()).toEqual(["m"]);
  });

  it("is not what an effect has that forbids itself to write", async () => {
    const { end, write } = await openHandling();
    const forbids = (client: PgClient) => client.query("set transaction read only");
    for (const effects of [[forbids, write("m")] as const, [write("m"), forbids] as const]) {
      expect(await end(...effects)).toMatchObject([failed({ code: "25006" })]);
    }
    expect(await end(write("m"))).toEqual([SETTLED]);
  });
});

type Fate = "happens" | "is lost" | "hangs";

/** A pool on which a chosen commit gets no answer: it happens, or is lost, or hangs on a server that does not notice. */
function cuttingPool(fate: Fate) {
  const pool = newPool();
  let hanging: (() => Promise<void>) | null = null;
  const cutting = {
    pool,
    /** The connection whose next commit gets no answer. */
    cut: null as number | null,
    /** Carries out the commit that hangs. */
    async goOn() {
      const carryOut = hanging;
      hanging = null;
      await carryOut?.();
    },
  };
  tapped(pool, async (asked, send, client) => {
    if (!asked.text.endsWith("; commit") || cutting.cut !== client.processID) return send();
    cutting.cut = null;
    if (fate === "happens") await send();
    if (fate !== "hangs") client.connection.stream.destroy();
    else {
      const { release } = client;
      client.release = () => {};
      hanging = async () => {
        await send();
        release(true);
      };
    }
    throw new Error("Connection terminated unexpectedly");
  });
  return cutting;
}

describe("a commit that is not answered", () => {
  /** Completes message `m` with an effect whose first commit meets `fate`, and counts how often it ran. */
  async function interruptedCommit(fate: Fate) {
    const cutting = cuttingPool(fate);
    const desk = await openHandling(cutting.pool);
    let ran = 0;
    const completion = complete(desk.lease, async (client) => {
      await desk.write(`run ${++ran}`)(client);
      if (ran === 1) cutting.cut = (client as Connection).processID;
    });
    expect(await desk.ask(completion)).toEqual([UNFINISHED]);
    return { ...desk, completion, goOn: cutting.goOn };
  }

  it.each([
    ["happened: the effect does not run again", "happens", "run 1"],
    ["did not happen: the effect runs again", "is lost", "run 2"],
  ] as const)("%s", async (_name, fate, written) => {
    const { store, settle, notes, completion } = await interruptedCommit(fate);
    expect(await settle(completion)).toEqual([SETTLED]);
    expect(await notes()).toEqual([written]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 1 }, gauges: { pending: 0 } });
  });

  it("may still happen, as when a standby does not answer: the effect does not run again before that is known", async () => {
    const { ask, settle, notes, completion, goOn } = await interruptedCommit("hangs");
    onTestFinished(goOn);
    expect(await ask(completion)).toEqual([UNFINISHED]);
    await goOn();
    expect(await settle(completion)).toEqual([SETTLED]);
    expect(await notes()).toEqual(["run 1"]);
  });
});
