import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { identityOf, type LaneKey } from "../../../src/inbox/lane-key.ts";
import { sha256 } from "../../../src/internal/json.ts";
import { eventIdentity, parseEvent, placeOf } from "../../../src/sources/messaging/parse.ts";
import type { WebhookEvent } from "../../../src/sources/messaging/types.ts";
import { bodies, bytes, deliveryBody, failedBody, inboundBody, sentBody } from "./examples.ts";

/** By another tool, so that our hashing cannot vouch for itself. */
const openssl = (input: string | Buffer) =>
  execFileSync("openssl", ["dgst", "-sha256", "-r"], { input }).toString().slice(0, 64);

const parse = (text: string): WebhookEvent => {
  const result = parseEvent(bytes(text));
  if (!result.ok) throw new Error(`${result.code} ${result.issues}`);
  return result.event;
};
const identity = (text: string) => eventIdentity(parse(text), bytes(text));
const place = (text: string) => placeOf(parse(text), () => "digest");
const source = "service";

describe("eventIdentity()", () => {
  it.each([
    [bodies["message.queued"], '["service","apc_7","msg_1001",1,"message.queued"]'],
    [sentBody, '["service","apc_7","msg_1001",2,"message.sent"]'],
    [deliveryBody, '["service","apc_7","msg_1001",3,"message.delivery"]'],
    [failedBody, '["service","apc_7","msg_1002",4,"message.failed"]'],
    [inboundBody, '["service","apc_7","msg_2001"]'],
    [
      '{"eventType":"message.read","direction":"outbound","apiClientId":"a","messageId":"m","sequence":9}',
      '["service","a","m",9,"message.read"]',
    ],
    [sentBody.replace("apc_7", "é😀"), '["service","é😀","msg_1001",2,"message.sent"]'],
    [sentBody.replace("apc_7", '\\",\\"\\u0000\\n'), '["service","\\",\\"\\u0000\\n","msg_1001",2,"message.sent"]'],
    [sentBody.replace('"sequence":2', '"sequence":-0'), '["service","apc_7","msg_1001",0,"message.sent"]'],
  ])("is the SHA-256 of the identity's JSON array (EVT-12) #%#", (body, array) => {
    expect(identity(body)).toBe(openssl(array));
  });

  it.each([
    ['{"eventType":"number.released","apiClientId":"a","data":{"x":1}}', '"a"'],
    ['{"eventType":"number.released","data":{"x":1}}', "null"],
    ['{"eventType":"number.released","apiClientId":5}', "null"],
    ['{"eventType":"number.released","apiClientId":"\\ud800"}', "null"],
  ])("rests on the bytes for an event without a place: %s", (body, client) => {
    expect(identity(body)).toBe(openssl(`["service",${client},"${openssl(body)}"]`));
  });

  it("is the same for every delivery of an event, however it was serialised (RCV-6)", () => {
    const { data, ...fields } = JSON.parse(deliveryBody);
    const again = JSON.stringify({ data: { later: true, ...data }, ...fields, occurredAt: 5 }, null, 2);
    expect(identity(again)).toBe(identity(deliveryBody));
  });
});

describe("identityOf()", () => {
  it("ignores the type of events that have a lane of their own", () => {
    const lane: LaneKey = { source, tenant: "a", name: null, order: null };
    const event = { lane, ownId: "m", sequence: 0 };
    expect(identityOf({ ...event, eventType: "message.inbound" })).toBe(identityOf({ ...event, eventType: "x" }));
  });
});

describe("placeOf()", () => {
  it("puts all outbound events of a message in one lane, by sequence", () => {
    const lane = { source, tenant: "apc_7", name: "msg_1001", order: "sequence" };
    expect(place(sentBody)).toEqual({ lane, sequence: 2 });
    expect(place(deliveryBody)).toEqual({ lane, sequence: 3 });
  });

  it("gives an inbound message a lane of its own (RCV-10)", () => {
    const lane = { source, tenant: "apc_7", name: null, order: null };
    const expected = { lane, ownId: "msg_2001", sequence: 0 };
    expect(place(inboundBody)).toEqual(expected);
    expect(place(inboundBody.replace("{", '{"sequence":7,'))).toEqual(expected);
  });

  it("puts an unknown outbound type into its message's lane (RCV-11)", () => {
    const text = '{"eventType":"message.read","direction":"outbound","apiClientId":"a","messageId":"m","sequence":0}';
    expect(place(text)).toEqual({ lane: { source, tenant: "a", name: "m", order: "sequence" }, sequence: 0 });
  });

  it.each([
    '{"direction":"outbound","apiClientId":"a","messageId":"m"}',
    '{"direction":"outbound","apiClientId":"a","messageId":"m","sequence":1.5}',
    '{"direction":"outbound","apiClientId":"a","messageId":"m","sequence":"1"}',
    '{"direction":"outbound","apiClientId":"a","messageId":"m","sequence":1e400}',
    '{"direction":"outbound","apiClientId":"a","messageId":5,"sequence":1}',
    '{"direction":"outbound","apiClientId":"a","messageId":"","sequence":1}',
    '{"direction":"outbound","apiClientId":"a","messageId":"\\udc00","sequence":1}',
    '{"direction":"inbound","apiClientId":"a","messageId":"m","sequence":1}',
    '{"apiClientId":"a","messageId":"m","sequence":1}',
  ])("leaves an unknown type without a place: %s", (rest) => {
    const text = rest.replace("{", '{"eventType":"message.read",');
    const lane = { source, tenant: "a", name: null, order: null };
    expect(place(text)).toEqual({ lane, ownId: "digest", sequence: 0 });
  });

  it("knows no negative zero", () => {
    const known = sentBody.replace('"sequence":2', '"sequence":-0');
    const unknown = known.replace("message.sent", "message.read");
    expect([place(known).sequence, place(unknown).sequence]).toEqual([0, 0]);
  });

  it("asks for the digest only when it needs one", () => {
    const refuse = () => {
      throw new Error("asked");
    };
    expect(() => placeOf(parse(sentBody), refuse)).not.toThrow();
    expect(() => placeOf(parse(inboundBody), refuse)).not.toThrow();
    expect(() => placeOf(parse('{"eventType":"x"}'), refuse)).toThrow("asked");
  });
});

describe("sha256()", () => {
  it("hashes bytes as openssl does", () => {
    for (const input of [Buffer.alloc(0), Buffer.from([0, 255, 10]), bytes(inboundBody)]) {
      expect(sha256(input).toString("hex")).toBe(openssl(input));
    }
  });
});
