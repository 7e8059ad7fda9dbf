/** What `oncehook doctor` says of a service whose answers are not as specified. */
import { describe, expect, it } from "vitest";
import { altering, mended, service } from "./cases.ts";
import { clockAt, diagnose } from "./scene.ts";

describe("oncehook doctor, of an answer that cannot be read,", () => {
  it.each([
    ["/whoami", "whoami", ["api_invalid_response", "clock", "webhook_inbound", "webhook_delivery", "numbers"]],
    ["/webhooks", "webhooks.get", ["api", "clock", "api_invalid_response", "numbers"]],
    ["/numbers", "numbers.list", ["api", "clock", "webhook_inbound", "webhook_delivery", "api_invalid_response"]],
  ])("to %s, says so, and looks at the others", async (route, operation, codes) => {
    const { flags = {} } = await service(mended);
    const findings = await diagnose(flags, { fetch: altering(route, () => ({ numbers: [{}] })) });
    const ofTheService = findings.filter(({ code }) => codes.includes(code));
    expect(ofTheService.map(({ code }) => code)).toEqual(codes);
    const { what } = findings.find(({ level }) => level === "problem") ?? {};
    expect(what).toMatch(new RegExp(`^The answer to ${operation} is not as specified: \\S+: expected \\w+, \\S+: `));
  });
});

describe("oncehook doctor, of a route that the service refuses,", () => {
  it.each([
    ["/whoami", 500, ["api_refused", "clock", "webhook_inbound", "webhook_delivery", "numbers"]],
    ["/webhooks", 500, ["api", "clock", "api_refused", "numbers"]],
    ["/numbers", 403, ["api", "clock", "webhook_inbound", "webhook_delivery", "api_refused"]],
    ["/numbers", 429, ["api", "clock", "webhook_inbound", "webhook_delivery", "api_refused"]],
  ])("%s with %i, says so, and looks at the others", async (route, status, codes) => {
    const findings = await refusedAt(route, status);
    expect(findings.map(({ code }) => code)).toEqual(codes);
    const problems = findings.filter(({ level }) => level === "problem");
    expect(problems).toMatchObject([
      { code: "api_refused", what: expect.stringMatching(new RegExp(`^\\S+ was answered with ${status} `)) },
    ]);
  });

  it.each([403, 404])("takes default webhooks that are answered with %i for hidden (WHK-27)", async (status) => {
    const findings = await refusedAt("/webhooks", status);
    expect(findings.map(({ code }) => code)).toEqual(["api", "clock", "webhooks_hidden", "numbers"]);
    expect(findings.filter(({ level }) => level === "problem")).toEqual([]);
  });
});

/** What is said of the service, one of whose routes answers so. */
async function refusedAt(route: string, status: number) {
  const { flags = {} } = await service(mended);
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await globalThis.fetch(input, init);
    const refusal = { error: { code: "REFUSED", message: "No", details: {} }, requestId: "req_1" };
    return String(input).endsWith(route) ? Response.json(refusal, { status, headers: response.headers }) : response;
  };
  const findings = await diagnose(flags, { fetch, clock: clockAt() });
  return findings.slice(findings.findIndex(({ code }) => code === "store") + 1, -1);
}
