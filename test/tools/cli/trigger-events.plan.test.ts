/** Which events `oncehook trigger` sends. */
import { describe, expect, it } from "vitest";
import { parseEvent } from "../../../src/sources/messaging/parse.ts";
import { plan, type Wish } from "../../../src/tools/cli/trigger-events.ts";
import { seededRandom } from "../../../src/tools/testing/scenarios.ts";

interface Event {
  readonly eventType: string;
  readonly messageId?: string;
  readonly sequence?: number;
  readonly data: Record<string, unknown>;
}

function planned(wish: Partial<Wish>): readonly Event[] {
  const whole = { type: "queued", message: "msg_7", count: 1, shuffle: false, duplicate: false, ...wish };
  return plan(whole, seededRandom(1)) as readonly Event[];
}

const sequencesOf = (events: readonly Event[]) => events.map(({ sequence }) => sequence);

describe("plan()", () => {
  it.each(["queued", "sent", "delivery", "failed", "inbound", "message.sent"])(
    "makes an event that a receiver knows: %s",
    (type) => {
      const [event] = planned({ type });
      expect(parseEvent(event)).toMatchObject({
        ok: true,
        event: { eventType: `message.${type.replace("message.", "")}` },
      });
      expect([event?.messageId, event?.data.messageId]).toContain("msg_7");
    },
  );

  it("sends a lifecycle in its order, or in another one", () => {
    expect(sequencesOf(planned({ type: "lifecycle" }))).toEqual([1, 2, 3]);
    const order = ["delivery", "message.queued", "queued", "sent"];
    expect(sequencesOf(planned({ type: "lifecycle", order }))).toEqual([3, 1, 1, 2]);
    const failing = planned({ type: "lifecycle", order: ["failed", "queued"] });
    expect(failing.map(({ eventType, sequence }) => [eventType, sequence])).toEqual([
      ["message.failed", 3],
      ["message.queued", 1],
    ]);
  });

  it("makes several messages, shuffled and twice, the same way for the same seed", () => {
    const events = planned({ type: "lifecycle", count: 3, shuffle: true, duplicate: true });
    expect(events).toHaveLength(18);
    expect(new Set(events.map(({ messageId }) => messageId))).toEqual(new Set(["msg_7-1", "msg_7-2", "msg_7-3"]));
    const places = events.map(({ messageId, sequence }) => `${messageId}/${sequence}`);
    expect(new Set(places).size).toBe(9);
    expect(places).not.toEqual([...places].sort());
    const again = planned({ type: "lifecycle", count: 3, shuffle: true, duplicate: true });
    expect(again.map(({ messageId, sequence }) => `${messageId}/${sequence}`)).toEqual(places);
  });

  it("gives a type that nobody knows its message and its sequence (RCV-11)", () => {
    const [event] = planned({ type: "message.read", sequence: 5 });
    expect(event).toMatchObject({ eventType: "message.read", messageId: "msg_7", sequence: 5 });
  });

  it("sets fields to JSON or text, making what lies between", () => {
    const set = ["sequence=9", "data.error=null", "data.status=on = its way", "data.a.b=[1]", "data.to=+1"];
    const [event] = planned({ type: "failed", set });
    expect(event).toMatchObject({
      sequence: 9,
      data: { error: null, status: "on = its way", a: { b: [1] }, to: "+1" },
    });
  });

  it("changes no other event with it", () => {
    const events = planned({ type: "lifecycle", count: 2, set: ["data.error.code=X"] });
    expect(events.every(({ data }) => (data.error as { code: string }).code === "X")).toBe(true);
    expect(planned({ type: "failed" })[0]?.data.error).toMatchObject({ code: "PROVIDER_SEND_FAILED" });
  });

  it.each<[Partial<Wish>, RegExp]>([
    [{ type: "deliverd" }, /no event "deliverd"\. Did you mean "delivery"\?/],
    [{ type: "lifecycle", sequence: 1 }, /--sequence goes with a single event/],
    [{ type: "inbound", sequence: 1 }, /message\.inbound has no sequence/],
    [{ order: ["queued"] }, /--order goes with lifecycle/],
    [{ type: "lifecycle", order: ["inbound"] }, /--order takes queued, sent, and delivery or failed/],
    [{ set: ["data.body"] }, /--set takes PATH=VALUE/],
    [{ set: ["__proto__.a=1"] }, /--set takes PATH=VALUE/],
  ])("refuses %j", (wish, message) => {
    expect(() => planned(wish)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }),
    );
  });
});
