import { describe, expect, it } from "vitest";
import { createSubjectTest } from "../../src/inbox/subject.ts";

const PEER = "+15550100002";
const OTHER = "+15550100003";
const body = (value: object) => Buffer.from(JSON.stringify(value));
const naming = (text: string) => [body({ nothing: "here" }), body({ x: { y: text } })];
const lane = (tag: "outbound" | "inbound" | "unlaned", messageId: string, peer: string | null) => {
  return { key: { apiClientId: "apc_7", tag, messageId }, peer };
};
/** For a lane whose facts tell: its bodies need not be read. */
const unread = () => {
  throw new Error("The bodies were read.");
};

describe("createSubjectTest() of a number", () => {
  const { isAbout, isNamedIn } = createSubjectTest({ peer: PEER });

  it("knows a lane by its peer, and reads no body for it", () => {
    expect(isAbout(lane("outbound", "m", PEER), unread)).toBe(true);
    expect(isAbout(lane("outbound", "m", OTHER), unread)).toBe(false);
  });

  it("reads the bodies of a lane that has no peer, and of one without a place: one that names it is enough", () => {
    for (const silent of [
      lane("outbound", "m", null),
      lane("unlaned", "digest", null),
      lane("unlaned", "digest", OTHER),
    ]) {
      expect(isAbout(silent, () => naming(PEER))).toBe(true);
      expect(isAbout(silent, () => naming(OTHER))).toBe(false);
    }
  });

  it("finds the number in a body", () => {
    expect([body({ to: PEER }), body({ to: OTHER })].map(isNamedIn)).toEqual([true, false]);
  });
});

describe("createSubjectTest() of a message", () => {
  const { isAbout, isNamedIn } = createSubjectTest({ messageId: "msg_1" });

  it("knows a lane by its message, and reads no body for it", () => {
    expect(isAbout(lane("outbound", "msg_1", null), unread)).toBe(true);
    expect(isAbout(lane("outbound", "msg_2", null), unread)).toBe(false);
    expect(isAbout(lane("inbound", "msg_2", PEER), unread)).toBe(false);
  });

  it("reads the bodies of a lane without a place", () => {
    expect(isAbout(lane("unlaned", "digest", null), () => naming("msg_1"))).toBe(true);
    expect(isAbout(lane("unlaned", "digest", null), () => naming("msg_2"))).toBe(false);
  });

  it("finds the message in a body", () => {
    expect([body({ messageId: "msg_1" }), body({ messageId: "msg_2" })].map(isNamedIn)).toEqual([true, false]);
  });
});

describe("createSubjectTest() of digits", () => {
  it("finds them as a number in JSON, from seven on: shorter ones are amounts and counters too", () => {
    const finds = (messageId: string, value: object) => createSubjectTest({ messageId }).isNamedIn(body(value));
    expect(finds("1234567", { id: 1234567 })).toBe(true);
    expect(finds("1234567", { id: 12345678 })).toBe(false);
    expect(finds("200123", { amount: 200123 })).toBe(false);
    expect(finds("200123", { id: "200123" })).toBe(true);
  });
});
