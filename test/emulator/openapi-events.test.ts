/** The events of the OpenAPI document: as the specification's field tables have them, and as the emulator sends them. */
import { describe, expect, it } from "vitest";
import { unknownFields } from "../../src/emulator/http/route.ts";
import { documentedEvents } from "../../src/emulator/openapi/notes.ts";
import { eventSchemas, KNOWN_EVENT_TYPES } from "../../src/service/parse.ts";
import type { KnownEventType } from "../../src/service/types.ts";
import { document, json, schemaOf } from "./openapi-support.ts";
import { send, start, tokenOf } from "./support.ts";

describe("webhooks of the document", () => {
  it("are the five events, each with its body and the two headers (EVT-1, DLV-4)", () => {
    expect(Object.keys(document.webhooks)).toEqual([...KNOWN_EVENT_TYPES]);
    for (const eventType of KNOWN_EVENT_TYPES) {
      const { post } = document.webhooks[eventType];
      expect(post.parameters.map(({ name }: { name: string }) => name)).toEqual([
        "X-Service-Timestamp",
        "X-Service-Signature",
      ]);
      const body = schemaOf(json(post.requestBody).schema);
      expect(body.properties.eventType.const).toBe(eventType);
      expect(body.additionalProperties).toBe(true);
      expect(body.required.includes("sequence")).toBe(eventType !== "message.inbound");
    }
  });
});

describe("events of the document", () => {
  // biome-ignore lint/suspicious/noExplicitAny: the document is JSON of many shapes
  const dataOf = (eventType: KnownEventType): any =>
    schemaOf(json(document.webhooks[eventType].post.requestBody).schema).properties.data;

  it("promise a providerMessageRef with message.delivery, and with it alone (EVT-7)", () => {
    const promising = KNOWN_EVENT_TYPES.filter((eventType) => "providerMessageRef" in dataOf(eventType).properties);
    expect(promising).toEqual(["message.delivery"]);
    expect(dataOf("message.delivery").properties.providerMessageRef).toEqual({ type: "string" });
    expect(dataOf("message.delivery").required).toContain("providerMessageRef");
  });

  it("show the status of each event in its casing, as an open string (EVT-5, EVT-13)", () => {
    const own = { "message.queued": "QUEUED", "message.sent": "sent", "message.failed": "failed" } as const;
    for (const [eventType, status] of Object.entries({ ...own, "message.delivery": "delivered" } as const)) {
      const described = dataOf(eventType as KnownEventType).properties.status;
      expect(described.type).toBe("string");
      expect(described).not.toHaveProperty("enum");
      expect("x-unspecified" in described).toBe(eventType === "message.delivery");
      expect(json(document.webhooks[eventType].post.requestBody).example.data.status).toBe(status);
    }
  });

  it("say that sendFrom is E.164 here, times are epoch milliseconds, and media are anything (EVT-2, EVT-4, EVT-11)", () => {
    for (const eventType of KNOWN_EVENT_TYPES) {
      const event = schemaOf(json(document.webhooks[eventType].post.requestBody).schema);
      expect(event.properties.occurredAt).toMatchObject({ type: "integer", description: "Epoch milliseconds" });
      if (eventType === "message.inbound") continue;
      expect(dataOf(eventType).properties.sendFrom.description).toMatch(/E\.164.*numberId/);
    }
    const { media, timestamp } = dataOf("message.inbound").properties;
    expect(timestamp).toMatchObject({ type: "integer", description: "Epoch milliseconds" });
    expect(Object.keys(media.items)).toEqual(["description", "x-unspecified"]);
    expect(media.items.description).toContain("the fields of an item are not shown");
  });

  it("are what the emulator sends, and what the receiver takes (EVT-1)", async () => {
    const emulator = await start({ lifecycle: "instant" });
    await send(emulator, await tokenOf(emulator), { to: ["+15005550008", "+15005550001"] });
    const types = new Set<string>();
    for (const { body } of emulator.control.events()) {
      const event = JSON.parse(body);
      const eventType: KnownEventType = event.eventType;
      types.add(eventType);
      expect(documentedEvents[eventType].safeParse(event).error).toBeUndefined();
      expect(eventSchemas[eventType].safeParse(event).error).toBeUndefined();
      expect(unknownFields(documentedEvents[eventType], event)).toEqual([]);
    }
    expect([...types].sort()).toEqual([...KNOWN_EVENT_TYPES].sort());
  });
});
