/** The OpenAPI document: it says what the routes say, and the committed copy is the same. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { apiPage, type Document } from "../../scripts/openapi.ts";
import { openApiDocument } from "../../src/emulator/openapi/document.ts";
import { ROUTES } from "../../src/emulator/routes/table.ts";
import { document, json, operationOf, operations, schemaOf } from "./openapi-support.ts";
import { call, start } from "./support.ts";

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

  it("has every route of the table, and no other", () => {
    const listed = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
    expect(ROUTES).toHaveLength(9);
  });

  it("names each operation once and tags it with a tag that it explains", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = document.tags.map(({ name }: { name: string }) => name);
    for (const { operation } of operations) expect(tags).toContain(operation.tags[0]);
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
});

describe("operations of the document", () => {
  it("can answer 401 and 500 on every core route, in the core error wrapper (GEN-2)", () => {
    const core = operations.filter(({ route }) => route.kind === "core");
    expect(core.length).toBeGreaterThan(0);
    for (const { operation } of core) {
      expect(operation.responses["401"].$ref).toBe("#/components/responses/Unauthorized");
      expect(operation.responses["500"].$ref).toBe("#/components/responses/ServerError");
    }
    for (const name of ["Unauthorized", "ServerError"]) {
      expect(json(document.components.responses[name]).schema.$ref).toBe("#/components/schemas/CoreError");
    }
  });

  it("promise each route its own errors only, and leave the codes open (GEN-12)", () => {
    const errors = operations.map(({ operation, route }) => [
      route.operationId,
      Object.keys(operation.responses).filter(
        (status) => Number(status) >= 400 && status !== "401" && status !== "500",
      ),
    ]);
    expect(Object.fromEntries(errors)).toMatchObject({
      whoami: [],
      listNumbers: ["403"],
      searchNumbers: ["400", "403", "502"],
      updateNumber: ["400", "403", "404"],
      sendMessages: ["400", "403", "404", "409"],
    });
    expect(document.components.schemas.CoreError.properties.error.properties.code).toEqual({ type: "string" });
  });

  it("answer errors of the token route in the OAuth shape only (GEN-3, TOK-12)", () => {
    const { responses } = operationOf("POST", "/api/auth/token");
    const errors = Object.keys(responses).filter((status) => status !== "200");
    expect(errors).toEqual(["400", "401", "500"]);
    for (const status of errors) {
      const response = document.components.responses[responses[status].$ref.split("/").at(-1)];
      expect(json(response).schema.$ref).toBe("#/components/schemas/OAuthError");
    }
    expect(document.components.schemas.OAuthError.properties.error.enum).toEqual([
      "invalid_request",
      "invalid_client",
      "unsupported_grant_type",
      "server_error",
    ]);
  });

  it("take credentials by Basic or in a form or JSON body on the token route, and a bearer elsewhere (TOK-2, TOK-3)", () => {
    const token = operationOf("POST", "/api/auth/token");
    expect(Object.keys(token.requestBody.content)).toEqual(["application/x-www-form-urlencoded", "application/json"]);
    expect(token.security).toEqual([{ basic: [] }, {}]);
    expect(document.security).toEqual([{ clientCredentials: [] }, { bearer: [] }]);
    expect(document.components.securitySchemes.clientCredentials.flows.clientCredentials.tokenUrl).toBe(
      "http://127.0.0.1:4010/api/auth/token",
    );
    for (const { route, operation } of operations) {
      if (route.kind === "core") expect(operation.security).toBeUndefined();
    }
  });

  it("require the Idempotency-Key of a send (SND-1)", () => {
    expect(operationOf("POST", "/api/core/messages/send").parameters).toEqual([
      expect.objectContaining({ name: "Idempotency-Key", in: "header", required: true }),
    ]);
  });

  it("require the path's parameters (UPD-1)", () => {
    expect(operationOf("PATCH", "/api/core/numbers/{numberId}").parameters).toEqual([
      expect.objectContaining({ name: "numberId", in: "path", required: true }),
    ]);
  });

  it("say the rules across fields of a search (SEA-2, SEA-3, SEA-4, SEA-5)", () => {
    const body = schemaOf(json(operationOf("POST", "/api/core/numbers/search").requestBody).schema);
    const rules = body.allOf.map((rule: Record<string, { required: string[] }>) => [
      rule.if?.required,
      rule.then?.required,
    ]);
    expect(rules).toEqual([
      [["nxx"], ["npa"]],
      [["city"], ["state"]],
    ]);
    expect(body.not).toMatchObject({ required: ["rateCenter"] });
    expect(body.description).toContain("nxx requires npa");
  });

  it("say when media are required and when forbidden (SND-11, SND-12)", () => {
    const body = schemaOf(json(operationOf("POST", "/api/core/messages/send").requestBody).schema);
    expect(body).toMatchObject({
      if: { properties: { messageType: { const: "MMS" } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ["media"], properties: { media: { minItems: 1 } } },
      else: { not: { required: ["media"] } },
    });
  });

  it("spell campaignregId in the request and campaignRegId in the answer (UPD-7, NUM-3)", () => {
    const update = operationOf("PATCH", "/api/core/numbers/{numberId}");
    expect(Object.keys(schemaOf(json(update.requestBody).schema).properties)).toContain("campaignregId");
    expect(Object.keys(document.components.schemas.Number.properties)).toContain("campaignRegId");
  });

  it("promise an integer providerStatus with 502 (SEA-8)", () => {
    const { schema } = json(document.components.responses.UpstreamError);
    const { details } = schemaOf(schema).properties.error.properties;
    expect(details.required).toEqual(["providerStatus"]);
    expect(details.properties.providerStatus.type).toBe("integer");
  });

  it("leave answers open to more fields", () => {
    for (const { operation, route } of operations) {
      const response = json(operation.responses[route.success.status]);
      expect(schemaOf(response.schema).additionalProperties).toBe(true);
    }
  });
});

describe("what the specification does not show", () => {
  it("is marked wherever a text says so", () => {
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

  it("covers the errors of the webhook routes, capabilities (AUT-10), and the method and headers of what the service sends (DLV-11, DLV-12, DLV-13)", () => {
    expect(operationOf("PATCH", "/api/core/webhooks/inbound").responses["400"]).toMatchObject({
      "x-unspecified": true,
    });
    for (const path of ["/api/core/numbers", "/api/core/numbers/search"]) {
      const [operation] = Object.values<{ responses: Record<string, object> }>(document.paths[path]);
      expect(operation?.responses["403"]).toMatchObject({ "x-unspecified": true });
    }
    const { post } = document.webhooks["message.sent"];
    expect(post["x-unspecified"]).toBe(true);
    expect(post.parameters.map((parameter: object) => "x-unspecified" in parameter)).toEqual([true, true]);
  });
});
