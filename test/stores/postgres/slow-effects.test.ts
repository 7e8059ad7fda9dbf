/** Effects that wait or hang: they delay neither deliveries nor other events (I9), and not for ever. */
import { describe, expect, it } from "vitest";
import type { PgClient, PgPool } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { event, turn } from "../sqlite-turns.ts";
import { ask, complete, failed, leases, openAt, openDesk, openHandling, SETTLED, settle, UNFINISHED } from "./desk.ts";
import { scene } from "./interleavings-scene.ts";
import { newPool, sql, until } from "./place.ts";

/** Holds an effect until it is opened. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const ACCEPTED = { outcome: "accepted" };

describe("an effect that waits", () => {
  it("holds up no delivery, of its own message neither, in its process and in others (I9)", async () => {
    const { store, schema, leases, ask, settle, notes, write } = await openDesk();
    const other = await openAt(schema);
    const [lease] = await leases("m");
    const { opened, open } = gate();
    const waits = complete(lease, write("before"), () => opened);
    expect(await ask(waits)).toEqual([UNFINISHED]);
    for (const [index, process] of [store, other].entries()) {
      const accepts = [event("m", 2 + index), event(`another ${index}`)];
      expect((await process.step(turn<PgClient>({ accepts }))).accepted).toMatchObject([ACCEPTED, ACCEPTED]);
    }
    expect(await ask(waits)).toEqual([UNFINISHED]);
    open();
    expect(await settle(waits)).toEqual([SETTLED]);
    expect(await notes()).toEqual(["before"]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 1 }, gauges: { pending: 4 } });
  });

  it("leaves a connection for deliveries, however many there are of its kind", async () => {
    const { store, leases, ask, settle } = await openDesk(newPool({ max: 3 }));
    const held = await leases("a", "b", "c", "d");
    const { opened, open } = gate();
    const waiting = held.map((lease) => complete(lease, () => opened));
    expect(await ask(...waiting)).toEqual(waiting.map(() => UNFINISHED));
    expect((await store.step(turn<PgClient>({ accepts: [event("m")] }))).accepted).toMatchObject([ACCEPTED]);
    open();
    expect(await settle(...waiting)).toEqual(waiting.map(() => SETTLED));
  });

  it("is taken back when another worker has recovered its lease meanwhile (I3)", async () => {
    const { store, schema, notes, write } = await openDesk();
    const other = await openAt(schema);
    const [lease] = await leases(store, "m");
    const { opened, open } = gate();
    const slow = complete(lease, write("slow"), () => opened);
    await ask(store, slow);
    await sql(`update ${schema}.lane set ready_at = 0`);
    const { leases: recovered } = await other.step(turn<PgClient>({ claim: { limit: 1, mode: "recover" } }));
    expect(await settle(other, complete(recovered[0], write("quick")))).toEqual([SETTLED]);
    open();
    expect(await settle(store, slow)).toEqual([{ status: "lost" }]);
    expect(await notes()).toEqual(["quick"]);
  });

  it("fails after ten seconds, and the server takes back what it wrote", async () => {
    const clock = createFakeClock();
    const { schema, lease, ask, settle, end, notes, write } = await openHandling(
      newPool({ application_name: "slow" }),
      {
        clock,
      },
    );
    let lent: PgClient | null = null;
    const hangs = complete(lease, write("hung"), (client) => {
      lent = client;
      return new Promise(() => {});
    });
    const first = ask(hangs);
    await until(() => lent !== null);
    await clock.advance(100);
    expect(await first).toEqual([UNFINISHED]);
    await clock.advance(9_899);
    expect(await ask(hangs)).toEqual([UNFINISHED]);
    await clock.advance(1);
    expect(await settle(hangs)).toMatchObject([failed({ code: "handler_timeout" })]);
    expect(() => (lent as PgClient | null)?.query("select 1")).toThrow(/effect has ended/);
    const open =
      "select pid from pg_stat_activity where application_name = 'slow' and state like 'idle in transaction%'";
    await until(async () => (await sql(open)).length === 0);
    expect(await notes()).toEqual([]);
    expect(await end(write("later"))).toEqual([SETTLED]);
    expect(await sql(`select attempts from ${schema}.event`)).toEqual([{ attempts: 1 }]);
  });

  it("is unfinished when the server is gone without a word", async () => {
    const clock = createFakeClock();
    const inner = newPool();
    let isGone = false;
    const unreachable = Object.assign(new Error("connect ETIMEDOUT"), { syscall: "connect" });
    const pool: PgPool = {
      end: () => inner.end(),
      on: (name, listener) => inner.on(name, listener),
      connect: (callback) => (isGone ? callback(unreachable, undefined) : inner.connect(callback)),
    };
    const { lease, ask, settle, notes, write } = await openHandling(pool, { clock });
    const effect = async (client: PgClient) => {
      await write("m")(client);
      if (isGone) return;
      isGone = true;
      await new Promise(() => {});
    };
    const first = ask(complete(lease, effect)).catch((error: unknown) => error);
    await until(() => isGone);
    await clock.advance(10_000);
    expect(await first).toMatchObject({ code: "store_unavailable" });
    isGone = false;
    const again = complete(lease, write("m"));
    expect(await settle(again)).toEqual([SETTLED]);
    expect(await notes()).toEqual(["m"]);
  });

  it("fails when a statement takes longer than it waits for an answer", async () => {
    const { end, notes, write } = await openHandling();
    const slow = (client: PgClient) => client.query({ text: "select pg_sleep(0.2)", query_timeout: 20 });
    expect(await end(slow)).toMatchObject([failed({ code: "handler_timeout" })]);
    expect(await end(write("later"))).toEqual([SETTLED]);
    expect(await notes()).toEqual(["later"]);
  });
});

describe("an effect that has not begun when its store closes", () => {
  it("does not begin, though others are waited for", async () => {
    const { store, leases, ask, notes, write } = await openDesk(newPool({ max: 3 }));
    const held = await leases("a", "b", "c");
    const { opened, open } = gate();
    const waiting = held.map((lease, index) => complete(lease, write(`${index}`), () => opened));
    expect(await ask(...waiting)).toEqual(waiting.map(() => UNFINISHED));
    const closed = store.close();
    open();
    await closed;
    expect(await notes()).toEqual(["0"]);
  });

  it("is not waited for while it pauses after an outage", async () => {
    const { store, lease, ask, notes, write } = await openHandling(newPool({ max: 1 }), { clock: createFakeClock() });
    const breaks = (client: PgClient) => client.query("select pg_terminate_backend(pg_backend_pid())");
    const broken = complete(lease, write("m"), breaks);
    for (const _time of [1, 2]) expect(await ask(broken)).toEqual([UNFINISHED]);
    const third = ask(broken);
    await store.close();
    expect(await third).toEqual([UNFINISHED]);
    expect(await notes()).toEqual([]);
  });
});

describe("the server's limits", () => {
  const LIMITS = ["statement_timeout", "idle_in_transaction_session_timeout"];

  /** As an effect finds them, and as the statements after it do. */
  async function limits(options: string): Promise<unknown[]> {
    const { schema, end } = await openHandling(newPool({ options }));
    await sql(`create table ${schema}.limits (during text[], after text[]);
      create function ${schema}.look() returns trigger language plpgsql as $$ begin
        update ${schema}.limits set after = array[${LIMITS.map((name) => `current_setting('${name}')`)}]; return new; end $$;
      create trigger look after update on ${schema}.event for each row execute function ${schema}.look()`);
    const look = (client: PgClient) =>
      client.query(`insert into ${schema}.limits select array[${LIMITS.map((name) => `current_setting('${name}')`)}]`);
    expect(await end(look)).toEqual([SETTLED]);
    const [row] = await sql(`select during, after from ${schema}.limits`);
    return [row?.during, row?.after];
  }

  const OWN = LIMITS.map((name, index) => `-c ${name}=${7 + index}s`).join(" ");

  it.each([
    [
      "end what a process that is gone or stands still has left, also within a statement",
      "",
      ["10s", "10s"],
      ["0", "10s"],
    ],
    ["stand where the role has its own", OWN, ["7s", "8s"], ["7s", "8s"]],
  ])("%s", async (_what, options, during, after) => {
    expect(await limits(options)).toEqual([during, after]);
  });
});

it("commits the effects of several events at the same time: none waits for another's counters", async () => {
  const { one, pool, schema } = await scene();
  // The first of them stops when it has written its row of counters.
  await pool.query(`create table ${schema}.written (text text);
    create function ${schema}.stop() returns trigger language plpgsql as $$ begin
      perform pg_advisory_xact_lock(770000 + new.slot); return null; end $$;
    create trigger stop after insert or update on ${schema}.tally for each row execute function ${schema}.stop()`);
  const gatekeeper = await pool.connect();
  await gatekeeper.query("select pg_advisory_lock(770008)");
  await one.accept(one.of("a", 1), one.of("b", 1));
  const note = (client: unknown) => (client as PgClient).query(`insert into ${schema}.written values ('written')`);
  const settles = (await one.claim()).map((lease) => one.complete(lease, "handled", [note]));
  const settled = one.settle(...settles);
  const waits = "select 1 from pg_locks where locktype = 'advisory' and objid = 770008 and not granted";
  await until(async () => (await pool.query(waits)).rowCount === 1);
  await until(async () => (await pool.query(`select 1 from ${schema}.written`)).rowCount === 1);
  await gatekeeper.query("select pg_advisory_unlock(770008)");
  gatekeeper.release();
  expect(await settled).toEqual(["settled", "settled"]);
  expect(await one.store.stats()).toMatchObject({ counters: { handled: 2 }, gauges: { pending: 0 } });
});
