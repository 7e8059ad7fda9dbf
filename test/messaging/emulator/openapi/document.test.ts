/** The OpenAPI document: the committed copy and its parts. openapi-answers.test.ts holds calls and answers against it. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { apiPage, type Document } from "../../../../scripts/openapi.ts";
import { coreErrorSchema, oauthErrorSchema, unknownFields } from "../../../../src/messaging/emulator/http/route.ts";
import { openApiDocument } from "../../../../src/messaging/emulator/openapi/document.ts";
import { documentedEvents, eventExamples, NOTES, noteOf } from "../../../../src/messaging/emulator/openapi/notes.ts";
import { ROUTES } from "../../../../src/messaging/emulator/routes/table.ts";
import { eventSchemas, KNOWN_EVENT_TYPES } from "../../../../src/sources/messaging/parse.ts";
import type { KnownEventType } from "../../../../src/sources/messaging/types.ts";
import { call, send, start, tokenOf } from "../support.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is JSON of many shapes, and each test looks at one
const document: any = JSON.parse(JSON.stringify(openApiDocument()));
const operationOf = (method: string, path: string) => document.paths[path][method.toLowerCase()];
const operations = ROUTES.map((route) => ({ route, operation: operationOf(route.method, route.path) }));
// biome-ignore lint/suspicious/noExplicitAny: as above
const json = ({ content }: { content: Record<string, unknown> }) => content["application/json"] as any;

describe("openApiDocument()", () => {
  it("is what docs/openapi.json holds", () => {
    const committed = readFileSync("docs/openapi.json", "utf8");
    const made = `${JSON.stringify(openApiDocument(), null, 2)}\n`;
    expect(committed === made, "docs/openapi.json is not what the sources say: run `npm run openapi`").toBe(true);
  });

  it("is what docs/emulator-api.md shows", () => {
    const page = readFileSync("docs/emulator-api.md", "utf8");
    expect(page === apiPage(openApiDocument() as unknown as Document), "run `npm run openapi`").toBe(true);
    const { paths, webhooks, components } = openApiDocument() as unknown as Document;
    const names = [paths, webhooks, components.schemas].flatMap((each) => Object.keys(each));
    expect(names.filter((name) => !new RegExp(`^### .*${name.replace(/[.{}]/g, "\\$&")}$`, "m").test(page))).toEqual(
      [],
    );
  });

  it("names the address at which it was asked for, with its base path (GEN-13)", async () => {
    const emulator = await start({ basePath: "/sms" });
    const { body } = await call(emulator, "GET", "/_emulator/openapi.json");
    expect(body.servers[0].url).toBe(emulator.url);
    expect(body.components.securitySchemes.clientCredentials.flows.clientCredentials.tokenUrl).toBe(
      `${emulator.url}/api/auth/token`,
    );
  });

  it("is version 0.2.0, and no path has a version segment (GEN-5)", () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info.version).toBe("0.2.0");
    for (const path of Object.keys(document.paths)) expect(path).not.toMatch(/\/v?\d/);
  });

  it("refers only to components that are there, and uses each", () => {
    const text = JSON.stringify(document);
    const used = new Set(
      [...text.matchAll(/"#\/components\/(\w+)\/(\w+)"/g)].map(([, kind, name]) => `${kind}/${name}`),
    );
    const present = (["responses", "schemas"] as const).flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `${kind}/${name}`),
    );
    expect([...used].sort()).toEqual(present.sort());
  });

  it("leaves answers open to more fields", () => {
    for (const { operation, route } of operations) {
      const { schema } = json(operation.responses[route.success.status]);
      expect(document.components.schemas[schema.$ref.split("/").at(-1)].additionalProperties).toBe(true);
    }
  });

  it("marks what the specification does not show wherever a text says so", () => {
    let marked = 0;
    const look = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      const { description } = value as { description?: unknown };
      if (typeof description === "string" && description.includes("Unspecified:")) {
        expect(value).toMatchObject({ "x-unspecified": true });
        marked += 1;
      }
      for (const part of Object.values(value)) look(part);
    };
    look(document);
    expect(marked).toBeGreaterThan(10);
  });
});

it("the document's events are what the emulator sends, and what the receiver takes (EVT-1)", async () => {
  const emulator = await start({ lifecycle: "instant" });
  await send(emulator, await tokenOf(emulator), { to: ["+15005550008", "+15005550001"] });
  const types = new Set<string>();
  for (const { body } of emulator.control.events()) {
    const event = JSON.parse(body);
    const eventType: KnownEventType = event.eventType;
    types.add(eventType);
    for (const schema of [documentedEvents[eventType], eventSchemas[eventType]])
      expect(schema.safeParse(event).error).toBeUndefined();
    expect(unknownFields(documentedEvents[eventType], event)).toEqual([]);
  }
  expect([...types].sort()).toEqual([...KNOWN_EVENT_TYPES].sort());
});

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
