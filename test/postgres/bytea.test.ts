/** Bytes as the server writes them, in whichever of its two forms a role, a database or an effect has set. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/inbox/record.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { parseBytea } from "../../src/stores/postgres/encoding.ts";
import type { PgClient } from "../../src/stores/postgres.ts";
import { event, turn } from "../stores/sqlite-turns.ts";
import { complete, openAt, openDesk, settle } from "./desk.ts";
import { newPool, newSchema, sql, urlOf } from "./place.ts";

const ALL = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte));
const FORMS = ["hex", "escape"] as const;

describe("bytesOf()", () => {
  it.each(FORMS)("reads every byte in the form %s", async (form) => {
    const pool = newPool({ max: 1 });
    await pool.query(`set bytea_output = ${form}`);
    const cases = [ALL, Buffer.concat([ALL, ALL]).reverse(), Buffer.from("\\x41\\\\101"), Buffer.alloc(0)];
    for (const written of cases) {
      const answer = await pool.query({ text: "select $1::bytea as read", values: [written], types: AS_TEXT });
      expect(parseBytea(answer.rows[0].read)).toEqual(written);
    }
  });
});

/** As the server wrote it. */
const AS_TEXT = { getTypeParser: () => (value: string) => value };

/** Roles belong to the server, not to a schema. */
const ROLE = `place_${process.pid}_escape`;

beforeAll(async () => {
  await sql(`create role ${ROLE} login password 'secret'; alter role ${ROLE} set bytea_output = escape`);
  await sql(`grant create on database postgres to ${ROLE}`);
});

afterAll(() => sql(`drop owned by ${ROLE} cascade; drop role ${ROLE}`));

const LANE = { apiClientId: "clïent\0", tag: "outbound", messageId: "m\\1" } as const;
const NAMED = { peer: "+49 é\0", externalReference: "\\101" };

function incoming(sequence: number): NewEvent {
  const raw = Buffer.concat([Buffer.from(`${sequence}`), ALL]);
  return event(LANE.messageId, sequence, { lane: LANE, raw, ...NAMED });
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
    expect(await settle(complete(leases[0], set, write("a")))).toEqual([{ status: "settled" }]);
    expect(await notes()).toEqual(["a"]);
    expect((await store.step(turn<PgClient>({ claim: { limit: 1 } }))).leases).toMatchObject([
      { raw: incoming(2).raw },
    ]);
    expect(await store.lane(LANE)).toMatchObject({ key: LANE, ...NAMED, cursor: 2 });
  });
});
