/** What an answer must have, and what it may have besides. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Operation as Answers, issuesOf, RESPONSES } from "../../../src/messaging/client/checks.ts";
import { config, leastAnswers, number } from "./operations.ts";

const LISTS_CHILD = fileURLToPath(
  new URL("../../../.build/test/messaging/client/wrong-lists-child.js", import.meta.url),
);
const LEAST = leastAnswers("any text");
const issues = (answers: Answers, body: unknown) => issuesOf(RESPONSES[answers], body);

describe.each(Object.keys(RESPONSES) as Answers[])("the answer to %s", (answers) => {
  const least = LEAST[answers];

  it("may have the least, and fields that the specification does not show", () => {
    expect(issues(answers, least)).toEqual([]);
    expect(issues(answers, withExtra(least))).toEqual([]);
  });

  it("lacks no field, and is an object", () => {
    for (const name of Object.keys(least)) {
      const found = issues(answers, { ...least, [name]: undefined });
      expect(found).toEqual([expect.stringMatching(`^${name}: expected `)]);
    }
    for (const body of [null, undefined, "text", 7, []])
      expect(issues(answers, body)).toEqual(["body: expected object"]);
  });
});

describe("RESPONSES", () => {
  const { whoami, "webhooks.get": webhooks, "numbers.search": search, "messages.send": sent } = LEAST;
  const other = { ...config, eventClass: "MESSAGES_V2", scope: "ACCOUNT" };
  const nulls = { campaignRegId: null, webhookInboundOverride: null, webhookDeliveryOverride: null };
  const available = { e164: "+12065550110", nationalDisplay: null, city: null, state: null, rateCenter: null };
  const texts = ["", "<b>", "\u001b[2J", "+14155550123"].map((to) => ({ ...sent.errors[0], to }));

  it.each<[what: string, answers: Answers, body: object]>([
    ["statuses and capabilities", "whoami", { ...whoami, apiClientStatus: "PAUSED", capabilities: ["x:y"] }],
    ["a number's status", "numbers.list", { numbers: [{ ...number, status: "PORTING" }] }],
    ["any event class (WHK-15)", "webhooks.update", other],
    ["any event class (WHK-15)", "webhooks.get", { ...webhooks, defaults: { inbound: other, delivery: other } }],
    ...[undefined, null, 0, 1_767_225_600_000].map((time): [string, Answers, object] => {
      return ["times (WHK-16)", "webhooks.update", { ...config, previousSecretValidUntil: time, rotatedAt: time }];
    }),
    ...[undefined, null, "https://a.example"].map((endpointUrl): [string, Answers, object] => {
      return ["targets (WHK-14)", "webhooks.update", { ...config, endpointUrl }];
    }),
    ...[undefined, null, "a-secret-of-its-own"].map((generatedSecret): [string, Answers, object] => {
      return ["secrets (WHK-13)", "webhooks.update", { ...config, generatedSecret }];
    }),
    ["numbers with null (NUM-6)", "numbers.list", { numbers: [number, { ...number, ...nulls }] }],
    ["an update without a number (UPD-11)", "numbers.update", { number: null }],
    ["a count without a value (SEA-7)", "numbers.search", { ...search, providerResultCount: null }],
    ["a count (SEA-7)", "numbers.search", { ...search, providerResultCount: 7 }],
    [
      "a group's count that is not that of its numbers, and null in these (SEA-14)",
      "numbers.search",
      { ...search, groups: [{ rateCenter: "X", count: 99, numbers: [available] }] },
    ],
    [
      "any text as a rejected recipient, and none accepted (SND-8, SND-24)",
      "messages.send",
      { results: [], errors: texts },
    ],
    ["a state of today (SND-17)", "messages.send", { ...sent, results: [{ ...sent.results[0], status: "delivered" }] }],
  ])("take %s in %s: %j", (_, answers, body) => {
    expect(issues(answers, body)).toEqual([]);
  });
});

describe("issuesOf()", () => {
  it("tells path and type, and never a value", () => {
    const marked = "marked-4711";
    const results = [{ to: [marked], messageId: { marked }, status: 1, [marked]: marked }];
    expect(issues("messages.send", { results, errors: marked })).toEqual([
      ...["results.0.to: expected string", "results.0.messageId: expected string", "results.0.status: expected string"],
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

  it("tells the first 20 of millions, in a process with a small heap", () => {
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
