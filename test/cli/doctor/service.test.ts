/** What `oncehook doctor` says of a service whose answers are not as specified. */
import { describe, expect, it } from "vitest";
import { diagnose } from "./scene.ts";
import { altering, mended, service } from "./service-cases.ts";

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
