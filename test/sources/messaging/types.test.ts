/** Most of this file is checked by the compiler: a wrong type fails `tsc`, which includes the tests. */
import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import { createReceiver } from "../../../src/index.ts";
import {
  eventSchemas,
  isKnownEvent,
  isKnownEventType,
  KNOWN_EVENT_TYPES,
  parseEvent,
} from "../../../src/sources/messaging/parse.ts";
import type {
  EventByType,
  KnownEvent,
  KnownEventType,
  LateEvent,
  MessageDeliveryEvent,
  MessageFailedEvent,
  MessageInboundEvent,
  UnknownEvent,
  WebhookEvent,
} from "../../../src/sources/messaging/types.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { bytes, deliveryBody } from "./examples.ts";

/** The declared fields only, read-only: a loose schema also has an index signature, which the interfaces leave out. */
type Declared<T> = T extends string
  ? T
  : T extends readonly (infer Element)[]
    ? readonly Declared<Element>[]
    : T extends object
      ? { readonly [Key in keyof T as string extends Key ? never : Key]: Declared<T[Key]> }
      : T;
type SchemaEvents = { [Type in KnownEventType]: z.infer<(typeof eventSchemas)[Type]> };

describe("the event types", () => {
  it("are those of the schemas, field by field, both ways", () => {
    expectTypeOf<Declared<EventByType>>().toExtend<Declared<SchemaEvents>>();
    expectTypeOf<Declared<SchemaEvents>>().toExtend<Declared<EventByType>>();
    expectTypeOf<keyof EventByType>().toEqualTypeOf<(typeof KNOWN_EVENT_TYPES)[number]>();
    expect(Object.keys(eventSchemas)).toEqual([...KNOWN_EVENT_TYPES]);
  });

  it("have a schema that reads each type and no other (EVT-1)", () => {
    for (const eventType of KNOWN_EVENT_TYPES) {
      expect(eventSchemas[eventType].shape.eventType.value).toBe(eventType);
      expect(isKnownEventType(eventType)).toBe(true);
    }
    expect(isKnownEventType("message.delivered")).toBe(false);
  });
});

describe("LateEvent", () => {
  it("is outbound, with its message and its place, whatever its type (RCV-7)", () => {
    const receiver = createReceiver({ secrets: "s".repeat(16), store: memoryStore({ volatile: true }) });
    receiver.onLate((event) => {
      expectTypeOf(event).toEqualTypeOf<LateEvent>();
      expectTypeOf(event.direction).toEqualTypeOf<"outbound">();
      expectTypeOf(event.messageId).toEqualTypeOf<string>();
      expectTypeOf(event.sequence).toEqualTypeOf<number>();
      expectTypeOf(event.apiClientId).toEqualTypeOf<string>();
      // @ts-expect-error: an inbound event has no place among others that it could miss.
      const isInbound = event.eventType === "message.inbound";
      if (isKnownEvent(event)) expectTypeOf(event.data.to).toEqualTypeOf<string>();
      if (event.eventType === "message.failed") expectTypeOf(event).toEqualTypeOf<MessageFailedEvent>();
      return isInbound;
    });
    // One handler for all, as before.
    const handler = (event: WebhookEvent) => event.eventType;
    expect(receiver.onAny(handler).onLate(handler)).toBe(receiver);
    expectTypeOf<LateEvent>().toExtend<WebhookEvent>();
  });
});

describe("WebhookEvent", () => {
  it("narrows by its event type", () => {
    const result = parseEvent(bytes(deliveryBody));
    if (!result.ok) throw new Error(result.code);
    const { event } = result;
    expectTypeOf(event).toEqualTypeOf<WebhookEvent>();
    expectTypeOf(event.eventType).toExtend<string>();
    if (event.eventType !== "message.delivery") throw new Error("not narrowed");
    expectTypeOf(event).toEqualTypeOf<MessageDeliveryEvent>();
    expectTypeOf(event.sequence).toEqualTypeOf<number>();
    expectTypeOf(event.data.status).toExtend<string>();
    expect(event.data.providerMessageRef).toBe("prv-55");
  });

  it("narrows in a switch, and leaves the unknown event to the default", () => {
    const nameOf = (event: WebhookEvent): string => {
      switch (event.eventType) {
        case "message.queued":
        case "message.sent":
        case "message.delivery":
        case "message.failed":
          expectTypeOf(event.direction).toEqualTypeOf<"outbound">();
          return event.messageId;
        case "message.inbound":
          expectTypeOf(event).toEqualTypeOf<MessageInboundEvent>();
          expectTypeOf(event.data.media).toEqualTypeOf<readonly unknown[]>();
          return event.data.messageId;
        default:
          expectTypeOf(event).toEqualTypeOf<UnknownEvent>();
          expectTypeOf(event.data).toEqualTypeOf<unknown>();
          return event.eventType;
      }
    };
    const result = parseEvent({ eventType: "message.read" });
    expect(result.ok && nameOf(result.event)).toBe("message.read");
  });

  it("narrows by isKnownEvent()", () => {
    const check = (event: WebhookEvent) => {
      if (isKnownEvent(event)) expectTypeOf(event).toEqualTypeOf<KnownEvent>();
      else expectTypeOf(event).toEqualTypeOf<UnknownEvent>();
      // @ts-expect-error: a status taken for a type is the mistake that everybody makes once (EVT-5).
      return event.eventType === "message.delivered";
    };
    expectTypeOf(check).returns.toEqualTypeOf<boolean>();
  });

  it("narrows by direction among the known events", () => {
    const check = (event: KnownEvent) =>
      event.direction === "inbound" ? expectTypeOf(event).toEqualTypeOf<MessageInboundEvent>() : event.sequence;
    expectTypeOf(check).toBeFunction();
  });
});
