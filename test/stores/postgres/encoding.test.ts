/** Arrays as the server takes them, and bytes as it writes them, in whichever of its two forms a role or an effect has set. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { NewEvent } from "../../../src/inbox/record.ts";
import type { InboxStore } from "../../../src/inbox/store.ts";
import { arrayOf, type ElementType, OutOfRange, parseBytea } from "../../../src/stores/postgres/encoding.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { event, turn } from "../sqlite-turns.ts";
import { complete, openAt, openDesk, SETTLED, settle } from "./desk.ts";
import { newPool, newSchema, sql, urlOf } from "./place.ts";

/** How the server reads an array that was written here, each element as its text. */
async function readBack(type: ElementType, values: readonly unknown[]): Promise<(string | null)[]> {
  const text = type === "bytea" ? "encode(v, 'hex')" : "v::text";
  const sql = `select coalesce(array_agg(${text} order by n), '{}') as read from unnest($1::${type}[]) with ordinality as a (v, n)`;
  const { rows } = await newPool().query(sql, [arrayOf(type, values)]);
  return rows[0].read;
}

describe("arrayOf()", () => {
  it.each<[ElementType, readonly unknown[]]>([
    ["bigint", [0, 1, -1, 2 ** 32, -(2 ** 32) - 1, 2 ** 60, 2 ** 63 - 1024, -(2 ** 63)]],
    ["bigint", [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
    ["int", [0, 2 ** 31 - 1, -(2 ** 31)]],
    ["smallint", [0, 32_767, -32_768]],
    ["text", ["", "é", '{"a",NULL}', "\\", "\u{1f600}"]],
  ])("writes %s to the last value of its range", async (type, values) => {
    const exact = (value: unknown) => (typeof value === "number" ? BigInt(value) : value);
    expect(await readBack(type, values)).toEqual(values.map((value) => `${exact(value)}`));
  });

  it("writes nulls between numbers, and no minus before 0", async () => {
    expect(await readBack("bigint", [null, -0, null, 7])).toEqual([null, "0", null, "7"]);
    expect(await readBack("bytea", [Buffer.of(1), null, Buffer.of(2)])).toEqual(["01", null, "02"]);
  });

  it("writes booleans and bytes", async () => {
    expect(await readBack("boolean", [true, false])).toEqual(["true", "false"]);
    const part = Buffer.from([9, 8, 7, 6]).subarray(1, 3);
    const hex = [ALL.toString("hex"), "0807", ""];
    expect(await readBack("bytea", [ALL, part, new Uint8Array()])).toEqual(hex);
  });

  it.each<ElementType>(["bigint", "int", "smallint", "boolean", "bytea", "text"])(
    "writes nulls and nothing as %s",
    async (type) => {
      expect(await readBack(type, [null, undefined])).toEqual([null, null]);
      expect(await readBack(type, [])).toEqual([]);
    },
  );

  it.each<[ElementType, number]>([
    ...[2 ** 63, -(2 ** 63) - 2048, 1.5, Number.NaN].map((value): [ElementType, number] => ["bigint", value]),
    ...[2 ** 31, -(2 ** 31) - 1, Number.POSITIVE_INFINITY].map((value): [ElementType, number] => ["int", value]),
    ...[32_768, -32_769].map((value): [ElementType, number] => ["smallint", value]),
    ...[2, -1].map((value): [ElementType, number] => ["boolean", value]),
  ])("refuses for %s what it does not hold, without showing it (%d)", (type, value) => {
    expect(() => arrayOf(type, [value])).toThrow(OutOfRange);
    const hidden = expect.not.objectContaining({ message: expect.stringContaining(`${value}`) });
    expect(() => arrayOf(type, [value])).toThrow(hidden);
  });
});

const ALL = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte));

describe("parseBytea()", () => {
  it.each(["hex", "escape"])("reads every byte in the form %s", async (form) => {
    const pool = newPool({ max: 1 });
    await pool.query(`set bytea_output = ${form}`);
    const asText = { getTypeParser: () => (value: string) => value };
    const cases = [ALL, Buffer.concat([ALL, ALL]).reverse(), Buffer.from("\\x41\\\\101"), Buffer.alloc(0)];
    for (const written of cases) {
      const answer = await pool.query({ text: "select $1::bytea as read", values: [written], types: asText });
      expect(parseBytea(answer.rows[0].read)).toEqual(written);
    }
  });
});

/** Roles belong to the server, not to a schema. */
const ROLE = `place_${process.pid}_escape`;

beforeAll(async () => {
  await sql(`create role ${ROLE} login password 'secret'; alter role ${ROLE} set bytea_output = escape`);
  await sql(`grant create on database postgres to ${ROLE}`);
});

afterAll(() => sql(`drop owned by ${ROLE} cascade; drop role ${ROLE}`));

const LANE = { source: "service", tenant: "clïent\0", name: "m\\1", order: "sequence" } as const;
const NAMED = { peer: "+49 é\0", externalReference: "\\101" };

function incoming(sequence: number): NewEvent {
  const raw = Buffer.concat([Buffer.from(`${sequence}`), ALL]);
  return event(LANE.name, sequence, { lane: LANE, raw, ...NAMED });
}

/** Accepts an event and takes its lane's head. */
async function take(store: InboxStore<PgClient>, sequence: number) {
  return store.step(turn<PgClient>({ accepts: [incoming(sequence)], claim: { limit: 1 } }));
}

describe("an inbox whose server writes bytes in the escape form", () => {
  it("gives and keeps what it was given, for a role that has it set", async () => {
    const store = await openAt(newSchema(), newPool({ connectionString: urlOf({ user: ROLE }) }));
    const first = await take(store, 1);
    // A second time, so that the lane is read and written back.
    await settle(store, complete(first.leases[0]));
    const second = await take(store, 2);
    expect(second.accepted).toMatchObject([{ outcome: "accepted", lane: first.leases[0]?.lane }]);
    await settle(store, complete(second.leases[0]));
    expect((await take(store, 2)).accepted).toMatchObject([{ outcome: "duplicate" }]);
    const { raw, digest } = incoming(2);
    const id = second.leases[0]?.event ?? 0;
    const handled = { state: "done", outcome: "handled" };
    expect(await store.lane(LANE)).toMatchObject({
      ...{ key: LANE, ...NAMED, status: "idle", cursor: 2 },
      events: [handled, { ...handled, digest, conflict: false, duplicates: 1 }],
    });
    expect((await store.bodies([id], 1)).get(id)).toEqual({ raw, head: null });
  });

  it("keeps what it holds, for an effect that sets it", async () => {
    const { store, settle, notes, write } = await openDesk();
    const { leases } = await take(store, 1);
    await take(store, 2);
    const set = (client: PgClient) => client.query("set local bytea_output = escape");
    expect(await settle(complete(leases[0], set, write("a")))).toEqual([SETTLED]);
    expect(await notes()).toEqual(["a"]);
    const { leases: next } = await store.step(turn<PgClient>({ claim: { limit: 1 } }));
    expect(next).toMatchObject([{ raw: incoming(2).raw }]);
    expect(await store.lane(LANE)).toMatchObject({ key: LANE, ...NAMED, cursor: 2 });
  });
});
