/** What the inspector's JSON answers, over HTTP and whatever the store. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eventIdentity } from "../../../../src/sources/messaging/parse.ts";
import type {
  BulkLine,
  Drawing,
  EventPage,
  LaneDetail,
  LanePage,
  Lookup,
} from "../../../../src/tools/inspector/index.ts";
import { inbound, outbound } from "../../../receiver/events.ts";
import { fill, type MakeStore, NUMBER, openScene, type RouteScene, TEXT } from "./scene.ts";

async function messageOf(scene: RouteScene, messageId: string): Promise<LaneDetail> {
  const answer = await scene.get(`lanes/${await scene.laneOf(messageId)}`);
  expect(answer.status).toBe(200);
  return answer.json() as LaneDetail;
}

/** One line an event in the order of arrival, one a gap, and the end: the same in every store, for ids and times are left out. */
function told({ events, gaps, end }: Drawing): readonly string[] {
  const lines = events.map(({ sequence, arrival, handling, held, state, late, duplicates, attempts, attemptCount }) => {
    const hold = held && ` held: ${held.reason} ${held.from}-${held.to}${held.until === null ? "…" : ""}`;
    const facts = `${late ? " late" : ""}${duplicates > 0 ? ` +${duplicates}` : ""}`;
    return `${sequence}: ${arrival} → ${handling} ${state}${facts}, ${attempts.length} of ${attemptCount} failed${hold ?? ""}`;
  });
  const drawn = gaps.map(({ from, to, skipped, until, filledAt }) => {
    return `gap ${from}-${to}${skipped ? " given up" : ""}${until === null ? " open" : ""}${filledAt ? " filled late" : ""}`;
  });
  return [...lines, ...drawn, `${end.state} ${end.eventType}`];
}

const linesOf = (body: string) =>
  body
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as BulkLine);

export function routesSuite(name: string, makeStore: MakeStore): void {
  describe(`the JSON API on ${name}`, () => {
    it("draws each message as it went through a receiver (DLV-10, RCV-7)", async () => {
      const scene = await openScene(makeStore());
      await fill(scene);
      const stories = ["msg_order", "msg_gap", "msg_retry", "msg_dead", "msg_in"].map(async (id) => {
        const { drawing, events } = await messageOf(scene, id);
        expect(events.map(({ id }) => id).sort()).toEqual(drawing.events.map(({ id }) => id).sort());
        return told(drawing);
      });
      expect(await Promise.all(stories)).toEqual([
        [
          "3: 1 → 3 done, 0 of 1 failed held: gap 1-2",
          "2: 2 → 2 done, 0 of 1 failed held: gap 1-1",
          "1: 3 → 1 done +1, 0 of 1 failed",
          "gap 1-2",
          "ended message.delivery",
        ],
        [
          "1: 1 → 1 done, 0 of 1 failed",
          "3: 2 → 2 done, 0 of 1 failed held: gap 2-2",
          "2: 3 → null late late, 0 of 0 failed",
          "gap 2-2 given up filled late",
          "ended message.delivery",
        ],
        ["1: 1 → 1 done, 0 of 1 failed", "2: 2 → 2 done, 1 of 2 failed", "open null"],
        ["1: 1 → 1 done, 0 of 1 failed", "2: 2 → 2 dead, 1 of 1 failed", "failed message.sent"],
        ["0: 1 → 1 done, 0 of 1 failed", "ended message.inbound"],
      ]);
    });

    it("lists events and lanes by filter, page by page", async () => {
      const scene = await openScene(makeStore());
      await fill(scene);
      const first = (await scene.post("events", { limit: 4 }, "read")).json() as EventPage;
      expect(first.items).toHaveLength(4);
      const second = (await scene.post("events", { limit: 4, after: first.next }, "read")).json() as EventPage;
      expect(second.items[0]?.id).toBeLessThan(first.items[3]?.id ?? 0);
      const dead = (await scene.post("events", { states: ["dead"], peer: NUMBER }, "read")).json() as EventPage;
      expect(dead).toMatchObject({ items: [{ lane: "msg_dead", errorCode: "permanent_failure" }], next: null });
      const late = (await scene.post("events", { late: true, order: "oldest" }, "read")).json() as EventPage;
      expect(late.items).toMatchObject([{ lane: "msg_gap", sequence: 2, state: "late" }]);
      const open = { order: "sequence", without: ["message.delivery"] };
      const lanes = (await scene.post("lanes", open, "read")).json() as LanePage;
      expect(lanes.items.map(({ lane }) => lane).sort()).toEqual(["msg_dead", "msg_retry"]);
      expect((await scene.post("events", { lane: "\0" }, "read")).json()).toMatchObject({ items: [] });
    });

    it("finds lanes by a name, an id, a reference or a number, however it is written", async () => {
      const scene = await openScene(makeStore());
      await fill(scene);
      const lookUp = async (text: string) => (await scene.post("lookup", { text }, "read")).json() as Lookup;
      expect(await lookUp(" msg_gap ")).toMatchObject({
        matches: [{ source: "service", tenant: "apc_1", lane: "msg_gap", found: "lane", newest: { sequence: 2 } }],
        more: false,
      });
      expect(await lookUp("msg_in")).toMatchObject({
        matches: [{ lane: null, found: "id", newest: { ownId: "msg_in" } }],
      });
      expect((await lookUp("order-77")).matches.map(({ found }) => found)).toEqual(Array(4).fill("reference"));
      for (const text of [NUMBER, "1 555 010-0002", "+1 (555) 0100002"]) {
        const { matches } = await lookUp(text);
        expect(matches.map(({ found, newest }) => [found, newest.ownId])).toContainEqual(["number", "msg_in"]);
        expect(matches).toHaveLength(5);
      }
      expect(await lookUp("nothing")).toEqual({ matches: [], more: false });
      for (let n = 0; n < 21; n++) await scene.deliver(outbound("queued", { messageId: `msg_${n}`, to: NUMBER }));
      expect(await lookUp(NUMBER)).toMatchObject({ more: true, matches: { length: 20 } });
    });

    it("shows numbers and texts only when they are revealed, and the audit has it", async () => {
      const scene = await openScene(makeStore());
      await fill(scene);
      const lane = await scene.laneOf("msg_in");
      const asked = [
        ...["lanes/1", `lanes/${lane}`, "quarantine", "quarantine/1", "groups", "audit", "overview", "history"].map(
          (path) => scene.get(path, "reveal"),
        ),
        scene.post("events", {}, "reveal"),
        scene.post("events", { format: "csv" }, "reveal"),
        scene.post("lanes", {}, "reveal"),
        scene.post("lookup", { text: NUMBER }, "reveal"),
        scene.post("bulk", { act: "replay", query: { peer: NUMBER }, dryRun: true }, "reveal"),
      ];
      for (const { status, body } of await Promise.all(asked)) {
        expect(status).toBe(200);
        for (const secret of [NUMBER.slice(1), "5550100001", TEXT]) expect(body).not.toContain(secret);
        // With the digest, a reader who knows all of a body except eight digits could find them.
        expect(body).not.toMatch(/"digest":"/);
      }
      expect((await scene.post(`lanes/${lane}/reveal`, {}, "act")).status).toBe(403);
      const revealed = (await scene.post(`lanes/${lane}/reveal`, {}, "reveal")).json() as LaneDetail;
      expect(revealed).toMatchObject({ revealed: true, peer: NUMBER, events: [{ trace: null, sequence: 0 }] });
      expect(JSON.stringify(revealed.events[0]?.body)).toContain(TEXT);
      expect(revealed.events[0]?.digest).toMatch(/^[0-9a-f]{64}$/);
      expect((await scene.post("quarantine/1/reveal", {}, "reveal")).json()).toMatchObject({
        ...{ revealed: true, state: "held", body: { text: expect.stringContaining(TEXT) } },
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      expect((await scene.get("audit?limit=2")).json()).toMatchObject([
        { act: "reveal_quarantined", by: "ann", detail: "quarantine 1" },
        { act: "reveal", by: "ann", detail: `lane ${lane}` },
      ]);
      const lines = scene.log.filter(({ message }) => message.includes("revealed"));
      expect(lines.map(({ fields }) => fields)).toEqual([
        { by: "ann", laneId: lane },
        { by: "ann", quarantine: 1 },
      ]);
      expect(JSON.stringify(scene.log)).not.toMatch(/5550100002|Ring me/);
    });

    it("shows no digest of a body as the id of an event without a message, nor its identity (EVT-12)", async () => {
      const scene = await openScene(makeStore());
      const body = JSON.stringify({ eventType: "contact.optout", apiClientId: "apc_1", data: { number: NUMBER } });
      await scene.settle(body);
      const digest = hash("sha256", body);
      const secrets = [digest, eventIdentity(JSON.parse(body), Buffer.from(body))];
      const asked = [
        scene.get("lanes/1", "reveal"),
        ...["events", "lanes"].map((path) => scene.post(path, {}, "reveal")),
        scene.post("events", { format: "csv" }, "reveal"),
        scene.post("lookup", { text: digest }, "reveal"),
      ];
      for (const { status, body } of await Promise.all(asked)) {
        expect([status, body]).toEqual([200, expect.stringContaining("contact.optout")]);
        for (const secret of secrets) expect(body).not.toContain(secret);
      }
      expect((await scene.post("lanes/1/reveal", {}, "reveal")).json()).toMatchObject({
        lane: null,
        events: [{ ownId: digest, digest, identity: secrets[1] }],
      });
    });

    it("does single acts, in the name of the viewer", async () => {
      const scene = await openScene(makeStore());
      await fill(scene);
      const [dead] = (await scene.receiver.inbox.find({ states: ["dead"] })).items;
      const event = dead?.id ?? 0;
      scene.mend();
      expect((await scene.post(`events/${event}/replay`, {}, "read")).status).toBe(403);
      expect((await scene.post(`events/${event}/replay`)).json()).toEqual({ ok: true, event });
      await scene.settle();
      expect((await messageOf(scene, "msg_dead")).drawing.events[1]).toMatchObject({ replayed: true, state: "done" });
      const refused = await scene.post(`events/${event}/discard`);
      expect([refused.status, refused.json()]).toEqual([409, { ok: false, reason: "wrong_state" }]);
      const missing = await scene.post("events/999/replay");
      expect([missing.status, missing.json()]).toEqual([404, { ok: false, reason: "not_found" }]);
      const invalid = await scene.post("quarantine/1/replay");
      expect([invalid.status, invalid.json()]).toEqual([409, { ok: false, reason: "invalid_event" }]);
      expect((await scene.post("quarantine/1/discard")).json()).toEqual({ ok: true, event: null });
      await scene.settle(outbound("sent", { messageId: "msg_wait" }));
      const lane = await scene.laneOf("msg_wait");
      expect((await messageOf(scene, "msg_wait")).drawing).toMatchObject({ end: { state: "waiting" } });
      expect((await scene.post(`lanes/${lane}/unblock`)).json()).toEqual({ ok: false, reason: "wrong_state" });
      expect((await scene.post(`lanes/${lane}/release`)).json()).toMatchObject({ ok: true });
      const acts = scene.log.filter(({ message }) => message.startsWith("An act was")).map(({ fields }) => fields);
      expect(acts).toContainEqual({ act: "replay", by: "ann", event, ok: true });
      expect(acts).toContainEqual({ act: "replay", by: "ann", quarantine: 1, ok: false, reason: "invalid_event" });
      expect(acts).toContainEqual({ act: "release", by: "ann", laneId: lane, ok: true });
      expect((await scene.get("audit?limit=1")).json()).toMatchObject([{ act: "release_gap", by: "ann" }]);
    });

    it("does bulk work, after a dry run that counts the same and changes nothing", async () => {
      const scene = await openScene(makeStore(), { onDead: "block" });
      for (let n = 0; n < 3; n++) {
        await scene.settle(outbound("queued", { messageId: `msg_blocked_${n}` }));
        await scene.deliver(outbound("sent", { messageId: `msg_blocked_${n}` }));
      }
      const { drawing } = await messageOf(scene, "msg_blocked_0");
      expect(told(drawing).slice(1)).toEqual([
        "2: 2 → null pending, 0 of 0 failed held: blocked null-null…",
        "blocked message.queued",
      ]);
      expect((await scene.get("groups")).json()).toMatchObject([{ errorCode: "permanent_failure", count: 3 }]);
      await scene.quarantine(inbound({ messageId: "msg_late_in" }));
      await scene.quarantine(inbound({ messageId: "msg_other" }), ["delivery"]);
      await scene.quarantine("junk");
      scene.mend();
      const bulk = async (order: object) => {
        const ends: BulkLine[] = [];
        for (const dryRun of [true, false]) {
          const { status, headers, body } = await scene.post("bulk", { ...order, dryRun });
          expect([status, headers["content-type"]]).toEqual([200, "application/x-ndjson"]);
          expect(headers).toMatchObject({ "cache-control": "no-store, no-transform", "x-accel-buffering": "no" });
          ends.push(...linesOf(body).slice(-1));
        }
        const [dry, wet] = ends;
        expect(dry).toMatchObject({ kind: "done", dryRun: true });
        const { upTo: _, ...counted } = { upTo: 0, ...dry };
        expect(wet).toEqual({ ...counted, dryRun: false });
        return wet?.kind === "done" ? Object.fromEntries(Object.entries(wet.counts).filter(([, n]) => n > 0)) : wet;
      };
      expect(await bulk({ act: "unblock", ratePerSecond: 1_000 })).toEqual({ unblocked: 3 });
      await scene.settle();
      expect(await bulk({ act: "replay", query: {}, skipSuperseded: true })).toEqual({ superseded: 3 });
      expect(await bulk({ act: "replay", query: { lane: "msg_blocked_1" } })).toEqual({ replayed: 1 });
      await scene.settle();
      expect(await bulk({ act: "discard", query: {} })).toEqual({ discarded: 2 });
      expect(await bulk({ act: "replay_quarantined", reason: "other" })).toEqual({});
      expect(await bulk({ act: "replay_quarantined" })).toEqual({ replayed: 1, invalid_event: 2 });
      expect(await bulk({ act: "discard_quarantined", reason: "invalid_json" })).toEqual({ discarded: 2 });
      expect(await scene.laneOf("msg_late_in")).toBeGreaterThan(0);
      expect(await scene.laneOf("msg_other")).toBe(0);
      const acts = scene.log.filter(({ message }) => message.startsWith("Bulk work"));
      expect(acts[1]?.fields).toMatchObject({ act: "unblock", by: "ann", dryRun: false, end: "done" });
      expect(acts).toHaveLength(14);
      const single = scene.log.filter(({ message }) => message.startsWith("An act was")).map(({ fields }) => fields);
      const lane = await scene.laneOf("msg_blocked_0");
      expect(single[0]).toEqual({ act: "unblock", by: "ann", laneId: lane, ok: true });
      expect(single).toContainEqual({ act: "replay", by: "ann", quarantine: 1, ok: true });
      expect(single).toHaveLength(3 + 1 + 2 + 3 + 2);
    });
  });
}
