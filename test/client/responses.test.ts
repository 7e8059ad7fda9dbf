import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { issuesOf, type Operation, RESPONSES } from "../../src/client/checks.ts";
import { available, config, leastAnswers, number } from "./least-answers.ts";

const LISTS_CHILD = fileURLToPath(new URL("../../.build/test/client/wrong-lists-child.js", import.meta.url));
const LEAST = leastAnswers("any text");
const OPERATIONS = Object.keys(RESPONSES) as Operation[];
const issues = (operation: Operation, body: unknown) => issuesOf(RESPONSES[operation], body);

describe("RESPONSES", () => {
  it.each(OPERATIONS)("takes the least that %s answers with", (operation) => {
    expect(issues(operation, LEAST[operation])).toEqual([]);
  });

  it.each(OPERATIONS)("takes fields of %s that the specification does not show", (operation) => {
    expect(issues(operation, withExtra(LEAST[operation]))).toEqual([]);
  });

  it.each(OPERATIONS)("finds a field of %s that is missing, and a body that is no object", (operation) => {
    for (const [name] of Object.entries(LEAST[operation])) {
      const found = issues(operation, { ...LEAST[operation], [name]: undefined });
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(new RegExp(`^${name}: expected `));
    }
    for (const body of [null, undefined, "text", 7, []])
      expect(issues(operation, body)).toEqual(["body: expected object"]);
  });

  it("takes statuses, scopes and capabilities that are not shown", () => {
    expect(issues("whoami", { ...LEAST.whoami, apiClientStatus: "PAUSED", capabilities: ["x:y"] })).toEqual([]);
    expect(issues("numbers.list", { numbers: [{ ...number, status: "PORTING" }] })).toEqual([]);
  });

  it.each(["webhooks.get", "webhooks.update"] as const)("takes any event class in %s (WHK-15)", (operation) => {
    const other = { ...config, eventClass: "MESSAGES_V2", scope: "ACCOUNT" };
    const body =
      operation === "webhooks.get" ? { ...LEAST[operation], defaults: { inbound: other, delivery: other } } : other;
    expect(issues(operation, body)).toEqual([]);
  });

  it.each([undefined, null, 0, 1_767_225_600_000])("takes timestamps of a webhook that are %j (WHK-16)", (time) => {
    expect(issues("webhooks.update", { ...config, previousSecretValidUntil: time, rotatedAt: time })).toEqual([]);
  });

  it.each([undefined, null, "https://a.example"])("takes an endpointUrl of %j (WHK-14)", (endpointUrl) => {
    expect(issues("webhooks.update", { ...config, endpointUrl })).toEqual([]);
  });

  it.each([undefined, null, "a-secret-the-service-made"])(
    "takes a generatedSecret of %j (WHK-13)",
    (generatedSecret) => {
      expect(issues("webhooks.update", { ...config, generatedSecret })).toEqual([]);
    },
  );

  it("takes numbers whose optional fields are null or absent (NUM-6)", () => {
    const nulls = { campaignRegId: null, webhookInboundOverride: null, webhookDeliveryOverride: null };
    expect(issues("numbers.list", { numbers: [number, { ...number, ...nulls }] })).toEqual([]);
  });

  it("takes an update's answer without a number (UPD-11)", () => {
    expect(issues("numbers.update", { number: null })).toEqual([]);
    expect(issues("numbers.update", {})).toEqual(["number: expected object"]);
  });

  it.each([undefined, null, 7])("takes a providerResultCount of %j (SEA-7)", (providerResultCount) => {
    expect(issues("numbers.search", { ...LEAST["numbers.search"], providerResultCount })).toEqual([]);
  });

  it("takes a group whose count is not that of its numbers, and null in theirs (SEA-14)", () => {
    const nulls = { nationalDisplay: null, city: null, state: null, rateCenter: null };
    const groups = [{ rateCenter: "X", count: 99, numbers: [{ ...available, ...nulls }] }];
    expect(issues("numbers.search", { groups, requestedQuantity: 50 })).toEqual([]);
  });

  it("takes any text as a rejected recipient (SND-8)", () => {
    const [rejected] = LEAST["messages.send"].errors;
    const errors = ["", "<b>", "\u001b[2J", "+14155550123"].map((to) => ({ ...rejected, to }));
    expect(issues("messages.send", { results: [], errors })).toEqual([]);
  });

  it("takes a send without any accepted recipient (SND-24)", () => {
    expect(issues("messages.send", { results: [], errors: LEAST["messages.send"].errors })).toEqual([]);
  });

  it("takes the state of today from a repeated send (SND-17)", () => {
    const results = [{ ...LEAST["messages.send"].results[0], status: "delivered" }];
    expect(issues("messages.send", { results, errors: [] })).toEqual([]);
  });
});

describe("issuesOf()", () => {
  it("tells path and type, and never a value", () => {
    const marked = "marked-4711";
    const results = [{ to: [marked], messageId: { marked }, status: 1, [marked]: marked }];
    expect(issues("messages.send", { results, errors: marked })).toEqual([
      "results.0.to: expected string",
      "results.0.messageId: expected string",
      "results.0.status: expected string",
      "errors: expected array",
    ]);
  });

  it("tells integers from other numbers", () => {
    const found = (total: unknown) =>
      issues("whoami", { ...LEAST.whoami, assignedNumbers: { ...LEAST.whoami.assignedNumbers, total } });
    expect(found("7")).toEqual(["assignedNumbers.total: expected number"]);
    expect(found(1.5)).toEqual(["assignedNumbers.total: expected int"]);
    expect(found(1e300)).toHaveLength(1);
  });

  it("tells 20 problems at most", () => {
    const numbers = Array.from({ length: 1_000 }, () => null);
    expect(issues("numbers.list", { numbers })).toHaveLength(20);
    const groups = [{ rateCenter: "X", count: 0, numbers }];
    expect(issues("numbers.search", { groups, requestedQuantity: 50 }).at(-1)).toBe(
      "groups.0.numbers.19: expected object",
    );
  });

  it("needs no memory for millions of problems: a list of 3 MiB leaves a process with a small heap alive", () => {
    const { stdout, status } = spawnSync(process.execPath, ["--max-old-space-size=128", LISTS_CHILD]);
    expect(status).toBe(0);
    const first = (list: string) => Array.from({ length: 20 }, (_, index) => `${list}.${index}: expected object`);
    expect(JSON.parse(stdout.toString())).toEqual([first("numbers"), first("groups.0.numbers")]);
  });
});

/** Each object in it with one more field. */
function withExtra(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withExtra);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, withExtra(field)]);
  return { ...Object.fromEntries(fields), notShown: { at: [1] } };
}
