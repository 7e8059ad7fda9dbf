/** The examples of the OpenAPI document: they fit what they are examples of, and say what the emulator says. */
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { coreErrorSchema, oauthErrorSchema, unknownFields } from "../../src/emulator/http/route.ts";
import { documentedEvents, eventExamples, NOTES, noteOf } from "../../src/emulator/openapi/notes.ts";
import { ROUTES } from "../../src/emulator/routes/table.ts";
import { KNOWN_EVENT_TYPES } from "../../src/service/parse.ts";
import { document, json, operationOf } from "./openapi-support.ts";
import { call, start, tokenOf } from "./support.ts";

describe("examples of the document", () => {
  it("of events fit their schemas", () => {
    for (const eventType of KNOWN_EVENT_TYPES) {
      expect(documentedEvents[eventType].safeParse(eventExamples[eventType])).toMatchObject({ success: true });
    }
  });

  it("of requests and answers fit the schemas of their route", () => {
    let checked = 0;
    const fits = (schema: z.ZodType | undefined, value: unknown, place: string) => {
      expect(schema?.safeParse(value).success, place).toBe(true);
      expect(unknownFields(schema as z.ZodType, value), place).toEqual([]);
      checked += 1;
    };
    for (const route of ROUTES) {
      const { requestExamples = {}, responseExample } = noteOf(route);
      for (const [name, { value }] of Object.entries(requestExamples)) {
        fits(route.body, value, `${route.operationId}: ${name}`);
      }
      if (responseExample !== undefined) fits(route.success.schema, responseExample, route.operationId);
    }
    expect(checked).toBeGreaterThan(10);
  });

  it("of errors fit the contract of their route", () => {
    for (const [name, response] of Object.entries<{ content: Record<string, unknown> }>(
      document.components.responses,
    )) {
      const schema = name.startsWith("OAuth") ? oauthErrorSchema : coreErrorSchema;
      expect(schema.safeParse(json(response).example).success, name).toBe(true);
    }
  });

  it("of a webhook's update are what the emulator answers (WHK-12, WHK-18)", async () => {
    for (const kind of ["inbound", "delivery"]) {
      const emulator = await start();
      const path = `/api/core/webhooks/${kind}`;
      const { enable } = json(operationOf("PATCH", path).requestBody).examples;
      const { body } = await call(emulator, "PATCH", path, { token: await tokenOf(emulator), body: enable.value });
      const { example } = json(operationOf("PATCH", path).responses["200"]);
      expect({ ...example, generatedSecret: "" }).toEqual({ ...body, generatedSecret: "" });
      expect(example.generatedSecret).toHaveLength(body.generatedSecret.length);
    }
  });

  it("of errors that a reading decides say what the emulator says (AUT-10, WHK-27)", async () => {
    const emulator = await start({ unspecified: { "capabilities.enforce": true, "webhooks.routes": "404" } });
    emulator.control.updateClient("ac_main", { capabilities: [] });
    const token = await tokenOf(emulator);
    const refused = [
      ["GET", "/api/core/webhooks", 404],
      ["PATCH", "/api/core/webhooks/inbound", 404],
      ["PATCH", "/api/core/webhooks/delivery", 404],
      ["GET", "/api/core/numbers", 403],
      ["POST", "/api/core/numbers/search", 403],
    ] as const;
    for (const [method, path, status] of refused) {
      const called = await call(emulator, method, path, { token, ...(method === "GET" ? {} : { body: {} }) });
      expect([path, called.status]).toEqual([path, status]);
      const { example } = json(operationOf(method, path).responses[status]);
      expect([path, example.error]).toEqual([path, called.body.error]);
    }
  });

  it("belong to routes that exist", () => {
    const keys = ROUTES.map(({ method, path }) => `${method} ${path}`);
    expect(Object.keys(NOTES).filter((key) => !keys.includes(key))).toEqual([]);
  });
});
