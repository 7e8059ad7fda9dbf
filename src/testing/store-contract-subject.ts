/** The store contract on telling a person what is held on them: all that erasing then takes, and nothing of anybody else. */
import type { NewEvent } from "../inbox/record.ts";
import type { Subject } from "../inbox/subject.ts";
import { exportSubject, type SubjectRecord } from "../receiver/export-subject.ts";
import { type Bench, bytes, type ContractCase, hex, sha256 } from "./store-contract-bench.ts";

const PEER = "+15550001";

/** An event of an unknown type, whose lane tells neither the number nor the message. */
function unlaned(bench: Bench, body: object): NewEvent {
  const raw = bytes(JSON.stringify(body));
  const lane = { tag: "unlaned", messageId: hex(sha256(raw)) ?? "" } as const;
  return bench.event(0, { eventType: "message.read", lane, raw });
}

async function told(bench: Bench, subject: Subject): Promise<SubjectRecord[]> {
  const records: SubjectRecord[] = [];
  for await (const record of exportSubject(bench.store, subject)) records.push(record);
  return records;
}

/** Asks, erases, and asks again. */
async function askAndErase(bench: Bench, subject: Subject): Promise<readonly SubjectRecord[]> {
  const records = await told(bench, subject);
  bench.expect(await bench.act({ kind: "erase", subject })).toEqual({ ok: true, count: records.length });
  bench.expect(await told(bench, subject)).toEqual([]);
  return records;
}

export const subjectCases: readonly ContractCase[] = [
  {
    name: "tells of an event its body, number, reference, error, failed attempts and the conflicting body, as plain JSON",
    async run(bench) {
      const wish = { peer: PEER, externalReference: "order 7", note: "first" };
      await bench.accept(bench.event(1, wish), bench.event(1, { ...wish, note: "second" }));
      const failure = { code: "handler_failed", message: "No route to …01.", durationMs: 5 };
      await bench.settle(bench.dead(await bench.claimOne(), "continue", failure));
      const [record] = await askAndErase(bench, { peer: PEER });
      bench.expect(JSON.parse(JSON.stringify(record))).toEqual(record);
      bench.expect(record).toMatchObject({
        ...{ kind: "event", messageId: "m", apiClientId: "client", tag: "outbound", sequence: 1, state: "dead" },
        ...{ peer: PEER, externalReference: "order 7", errorCode: "handler_failed", error: "No route to …01." },
        failedAttempts: [{ attempt: 1, errorCode: "handler_failed", error: "No route to …01." }],
      });
      const { body, conflict } = record as Extract<SubjectRecord, { kind: "event" }>;
      bench.expect([body, conflict?.body].map((one) => JSON.stringify(one).includes("first"))).toEqual([true, false]);
      bench.expect(JSON.stringify(conflict?.body).includes("second")).toBe(true);
    },
  },
  {
    name: "tells of a number what erasing it takes: lanes, events of unknown types, quarantined bodies",
    async run(bench) {
      const named = [unlaned(bench, { from: PEER }), unlaned(bench, { from: `${PEER}2` })];
      const read = { eventType: "message.read", raw: bytes(`{"data":{"to":"${PEER}"}}`) };
      const bodies = [`{"to":"${PEER}"`, "{of no interest"].map((text) => bench.quarantine(text));
      await bench.step({
        accepts: [bench.event(1, { peer: PEER }), bench.event(2), bench.of("other", 1, { peer: "+15550002" })],
      });
      await bench.step({ accepts: [...named, bench.of("read", 5, read)], quarantines: bodies });
      const records = await askAndErase(bench, { peer: PEER });
      bench.expect(records.map(({ kind }) => kind)).toEqual(["event", "event", "event", "event", "quarantined"]);
      bench.expect(JSON.stringify(records).includes("5550002")).toBe(false);
    },
  },
  {
    name: "tells of a message what erasing it takes, in every state, and bytes that are no text in base64",
    async run(bench) {
      await bench.handle(bench.of("msg_1", 1));
      const inbound = bench.of("msg_1", 0, { lane: { tag: "inbound" } });
      const broken = bench.quarantine("", { raw: Buffer.concat([bytes("{msg_1,"), Buffer.of(0xff)]) });
      await bench.step({ accepts: [bench.of("msg_1", 4), inbound, bench.of("msg_10", 1)], quarantines: [broken] });
      const records = await askAndErase(bench, { messageId: "msg_1" });
      bench.expect(records.map(({ state }) => state)).toEqual(["done", "pending", "pending", "held"]);
      bench.expect(records[3]?.body).toEqual({ base64: Buffer.from(broken.raw).toString("base64") });
    },
  },
  {
    name: "tells of many messages and quarantined bodies of one number, page after page",
    async run(bench) {
      const bodies = Array.from({ length: 120 }, (_, index) => bench.quarantine(`{${index} ${PEER}`));
      await bench.step({ quarantines: bodies });
      const ids = Array.from({ length: 600 }, (_, index) => `m${index}`);
      await bench.accept(
        ...ids.map((id, index) => bench.of(id, 1, index % 2 === 0 ? { peer: PEER } : { peer: "+1999" })),
      );
      bench.expect((await askAndErase(bench, { peer: PEER })).length).toBe(420);
    },
  },
];
