import { describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.ts";
import { type ClientOptions, createClient } from "../../../src/messaging/client/index.ts";

const given = { baseUrl: "https://api.example.com", clientId: "client_main", clientSecret: "marked-secret" };

function refusal(options: object): SetupError {
  try {
    createClient({ ...given, ...options } as unknown as ClientOptions);
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
  throw new Error("The options were taken.");
}

const MISSING = "is missing; is the environment variable set?";
const NOT_HTTP =
  "must be https, because the client's secret is sent there; http is for this machine, such as localhost or *.localhost.";

describe("createClient()", () => {
  it.each([
    ...["https://api.example.com", "https://api.example.com/", "https://api.example.com/sms/v2/"],
    ...["http://127.0.0.1:4010", "http://localhost:4010", "http://[::1]:4010", "http://emulator.localhost:4010"],
  ])("takes %s as its baseUrl (GEN-13)", (baseUrl) => {
    expect(() => createClient({ ...given, baseUrl })).not.toThrow();
  });

  it.each(["http://emulator:4010", "http://10.0.0.7:4010", "http://host.docker.internal", "http://[fd00::1]/sms"])(
    "takes %s only where it is said so, and says how",
    (baseUrl) => {
      const how = `${NOT_HTTP} This host is in a private network: allowHttpToPrivateHosts: true takes it`;
      expect(refusal({ baseUrl }).message).toContain(how);
      expect(() => createClient({ ...given, baseUrl, allowHttpToPrivateHosts: true })).not.toThrow();
    },
  );

  it.each(["http://api.example.com", "http://8.8.8.8", "http://127.0.0.1.example.com"])(
    "refuses %s, a public host, whatever is allowed",
    (baseUrl) => {
      for (const allowHttpToPrivateHosts of [undefined, false, true])
        expect(refusal({ baseUrl, allowHttpToPrivateHosts }).message).toBe(`Option "baseUrl" ${NOT_HTTP}`);
    },
  );

  it.each<[option: string, value: unknown, message?: string]>([
    ...["baseUrl", "clientId", "clientSecret"].flatMap((option): [string, unknown, string][] => [
      [option, undefined, MISSING],
      [option, "", MISSING],
    ]),
    ...["api.example.com", "ftp://api.example.com", "file:///etc", 7].map((url): [string, unknown] => ["baseUrl", url]),
    ...["https://user:marked-secret@a.example", "https://a.example?key=marked-secret", "https://a.example/#x"].map(
      (url): [string, string] => ["baseUrl", url],
    ),
    ["clientSecret", 7],
    ["authMethod", "Basic"],
    ["timeoutMs", 0],
    ["timeoutMs", 300_001],
    ["timeoutMs", "30000"],
    ["maxRetries", -1],
    ["maxRetries", 11],
    ["maxRetries", 1.5],
    ["retryRateLimited", 1],
    ["allowHttpToPrivateHosts", "yes"],
    ["validateResponses", true],
    ["validateRequests", "yes"],
    ["fetch", "fetch"],
    ["logger", {}],
    ["onRequest", {}],
    ["onResponse", 1],
    ["onRetry", "x"],
  ])("refuses %s: %s, naming the option", (option, value, message = "") => {
    const error = refusal({ [option]: value });
    expect(error).toMatchObject({ code: "invalid_option", fields: { option } });
    expect(error.message).toContain(message);
    expect(error.message).not.toContain("marked-secret");
  });

  it.each([
    [{ baseMs: -1 }, "backoff.baseMs"],
    [{ maxMs: 60_001 }, "backoff.maxMs"],
    [{ base: 1 }, "base"],
    [7, undefined],
  ])("refuses the backoff %j", (backoff, option) => {
    expect(refusal({ backoff }).fields.option).toBe(option);
  });

  it("names the likely option for a misspelled one, and refuses no options at all", () => {
    expect(refusal({ clientsecret: "marked-secret" }).message).toContain('Did you mean "clientSecret"?');
    expect(refusal({ retries: 3 }).message).toContain("maxRetries");
    expect(() => createClient(undefined as never)).toThrow(SetupError);
  });
});
