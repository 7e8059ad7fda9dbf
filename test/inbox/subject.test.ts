import { describe, expect, it } from "vitest";
import { createMentionTest, createSubjectTest } from "../../src/inbox/subject.ts";
import { laneOf } from "./bench.ts";

const PEER = "+15550100002";
const OTHER = "+15550100003";
const body = (value: object) => Buffer.from(JSON.stringify(value));
const naming = (text: string) => [body({ nothing: "here" }), body({ x: { y: text } })];

interface OneEvent {
  readonly ownId: string | null;
  /** Null: they must not be read, because the lane or the id tells. */
  readonly bodies: readonly Uint8Array[] | null;
}

const bodiesOf = ({ bodies }: OneEvent) => {
  if (bodies === null) throw new Error("The bodies were read.");
  return bodies;
};

/** The lane of an outbound message. */
function message(name: string, peer: string | null, bodies: OneEvent["bodies"] = null) {
  return { key: laneOf(name), peer, events: [{ ownId: null, bodies }] };
}

/** An event that is alone in its lane. */
function single(ownId: string, peer: string | null, bodies: OneEvent["bodies"] = null) {
  return { key: { ...laneOf(""), name: null, order: null }, peer, events: [{ ownId, bodies }] };
}

const event = (bodies: OneEvent["bodies"]): OneEvent => ({ ownId: "evt_1", bodies });

/** A lane of another source. */
function shared(name: string, ...events: readonly OneEvent[]) {
  return { key: { source: "billing", tenant: null, name, order: "position" } as const, peer: null, events };
}

describe("createSubjectTest() of a number", () => {
  const { isAbout, isEventAbout, isNamedIn } = createSubjectTest({ peer: PEER }, bodiesOf);

  it("knows a lane by its peer, and reads no body for it", () => {
    for (const lane of [message, single]) {
      expect(isAbout(lane("m", PEER))).toBe(true);
      expect(isAbout(lane("m", OTHER))).toBe(false);
    }
  });

  it("reads the bodies of a lane that has no peer: one that names it is enough", () => {
    for (const silent of [message, single]) {
      expect(isAbout(silent("m", null, naming(PEER)))).toBe(true);
      expect(isAbout(silent("m", null, naming(OTHER)))).toBe(false);
    }
    const [about, other] = [event(naming(PEER)), event(naming(OTHER))];
    expect(isAbout(shared("sub_1", other, about))).toBe(true);
    expect(isAbout(shared("sub_1", other, other))).toBe(false);
    expect([about, other].map(isEventAbout)).toEqual([true, false]);
  });

  it("takes no id for it", () => {
    expect(isAbout(single(PEER, null, []))).toBe(false);
  });

  it("finds the number in a body", () => {
    expect([body({ to: PEER }), body({ to: OTHER })].map(isNamedIn)).toEqual([true, false]);
  });
});

describe("createSubjectTest() of an id", () => {
  const { isAbout, isEventAbout, isNamedIn } = createSubjectTest({ id: "msg_1" }, bodiesOf);

  it("knows a lane by its message, and reads no body for it", () => {
    expect(isAbout(message("msg_1", null))).toBe(true);
    expect(isAbout(message("msg_2", null))).toBe(false);
    expect(isAbout(message("msg_2", PEER))).toBe(false);
  });

  it("knows an event by its own id, and reads no body for it", () => {
    expect(isAbout(single("msg_1", PEER))).toBe(true);
    expect(isAbout(shared("sub_1", { ownId: "msg_1", bodies: null }))).toBe(true);
    expect(isEventAbout({ ownId: "msg_1", bodies: null })).toBe(true);
  });

  it("reads the bodies of other events that are not in a message's lane", () => {
    for (const peer of [null, PEER]) {
      expect(isAbout(single("digest", peer, naming("msg_1")))).toBe(true);
      expect(isAbout(single("digest", peer, naming("msg_2")))).toBe(false);
    }
    const [about, other] = [event(naming("msg_1")), event(naming("msg_2"))];
    expect(isAbout(shared("sub_1", other, about))).toBe(true);
    expect(isAbout(shared("sub_1", other, other))).toBe(false);
    expect([about, other].map(isEventAbout)).toEqual([true, false]);
  });

  it("takes the name of a lane that several events share for no message", () => {
    expect(isAbout(shared("msg_1", { ownId: "evt_1", bodies: [] }))).toBe(false);
  });

  it("finds the message in a body", () => {
    expect([body({ messageId: "msg_1" }), body({ messageId: "msg_2" })].map(isNamedIn)).toEqual([true, false]);
  });
});

describe("createSubjectTest() of digits", () => {
  it("finds them as a number in JSON, from seven on: shorter ones are amounts and counters too", () => {
    const finds = (id: string, value: object) => createSubjectTest({ id }, bodiesOf).isNamedIn(body(value));
    expect(finds("1234567", { id: 1234567 })).toBe(true);
    expect(finds("1234567", { id: 12345678 })).toBe(false);
    expect(finds("200123", { amount: 200123 })).toBe(false);
    expect(finds("200123", { id: "200123" })).toBe(true);
  });
});

const names = (text: string, body: string | Uint8Array) => createMentionTest(text)(Buffer.from(body));

describe("createMentionTest()", () => {
  it.each([
    ["a value", "msg_1", '{"data":{"messageId":"msg_1"}}'],
    ["a key", "msg_1", '{"msg_1":1}'],
    ["an element", "msg_1", '["msg_0", "msg_1"]'],
    ["the first of two equal keys", "msg_1", '{"id":"msg_1","id":"msg_2"}'],
    ["an escaped value", "+15550001", String.raw`{"to":"\u002b1555\u0030001"}`],
    ["an escaped slash", "a/b", String.raw`{"id":"a\/b"}`],
    ["a text with a quotation mark", 'say "a"', JSON.stringify({ id: 'say "a"' })],
    ["a text with a line break and an emoji", "a\n😀", JSON.stringify({ id: "a\n😀" })],
    ["another script, escaped by its writer", "Zoë", String.raw`["Zo\u00eb"]`],
    ["a broken body", "+15550001", '{"to":"+15550001'],
    ["a broken body with escapes", "+15550001", String.raw`{"to":"n\n\u002B15550001`],
    ["no JSON at all", "+15550001", "to=+15550001&from=0"],
    ["a later place", "msg_1", "msg_10 msg_1"],
    ["a text with a backslash in no JSON at all", String.raw`a\nb`, String.raw`id=a\nb&to=0`],
  ])("finds %s", (_what, text, body) => {
    expect(names(text, body)).toBe(true);
  });

  it.each([
    ["a longer id", "msg_1", '{"id":"msg_10"}'],
    ["a longer id, escaped", "msg_1", String.raw`{"id":"msg\u005f10"}`],
    ["a part of a text", "msg_1", '{"body":"about msg_1 and others"}'],
    ["a string inside a string", "msg_1", String.raw`{"body":"{\"id\":\"msg_1\"}"}`],
    ["the space between two strings", "msg_1", '{"a":"b"}'],
    ["a longer id in a broken body", "msg_1", "{msg_10"],
    ["a longer number in a broken body", "+15550001", "{+155500012"],
    ["a word that ends so", "id7", "{myid7"],
    ["a body of bytes", "msg_1", Buffer.from([0xff, 0x5c, 0xfe])],
  ])("does not find %s", (_what, text, body) => {
    expect(names(text, body)).toBe(false);
  });

  it("takes time in proportion to a body of a mebibyte", () => {
    const quotes = `["${'\\"'.repeat(500_000)}"]`;
    expect(names("msg_1", quotes)).toBe(false);
    expect(names("msg_1", `[${JSON.stringify("\\".repeat(400_000))},"msg_1"]`)).toBe(true);
    expect(names("msg_1", `${"msg_10".repeat(150_000)}`)).toBe(false);
  });
});
