import { describe, expect, it } from "vitest";
import { type ClientOptions, createClient } from "../../src/client/index.ts";
import { SetupError } from "../../src/errors.ts";

const given = { baseUrl: "https://api.example.com", clientId: "client_main", clientSecret: "marked-secret" };

function refusal(options: Record<string, unknown>): SetupError {
  try {
    createClient({ ...given, ...options } as unknown as ClientOptions);
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
  throw new Error("The options were taken.");
}

describe("createClient()", () => {
  it.each([
    "https://api.example.com",
    "https://api.example.com/",
    "https://api.example.com/sms/v2/",
    "http://127.0.0.1:4010",
    "http://localhost:4010",
    "http://[::1]:4010",
    "http://emulator.localhost:4010",
  ])("takes %s as its baseUrl (GEN-13)", (baseUrl) => {
    expect(() => createClient({ ...given, baseUrl })).not.toThrow();
  });

  it.each([
    undefined,
    "",
    "api.example.com",
    "ftp://api.example.com",
    "file:///etc",
    "https://user:marked-secret@api.example.com",
    "https://api.example.com?key=marked-secret",
    "https://api.example.com/#x",
    "http://api.example.com",
    "http://127.0.0.1.example.com",
    7,
  ])("refuses %s as its baseUrl", (baseUrl) => {
    const error = refusal({ baseUrl });
    expect(error).toMatchObject({ code: "invalid_option", fields: { option: "baseUrl" } });
    expect(error.message).not.toContain("marked-secret");
  });

  describe.each(["baseUrl", "clientId", "clientSecret"])("given no %s", (option) => {
    it.each([[undefined], [""]])("asks for the environment variable: %j", (value) => {
      const { message } = refusal({ [option]: value });
      expect(message).toBe(`Option "${option}" is missing; is the environment variable set?`);
    });
  });

  const NOT_HTTP =
    'Option "baseUrl" must be https, because the client\'s secret is sent there; http is for this machine, such as localhost or *.localhost.';

  it.each([undefined, false, true])("refuses http to a public host, allowHttpToPrivateHosts: %s", (allow) => {
    for (const baseUrl of ["http://api.example.com", "http://8.8.8.8", "http://127.0.0.1.example.com"])
      expect(refusal({ baseUrl, allowHttpToPrivateHosts: allow }).message).toBe(NOT_HTTP);
  });

  it.each(["http://emulator:4010", "http://10.0.0.7:4010", "http://host.docker.internal", "http://[fd00::1]/sms"])(
    "takes %s only where it is said so, and says how",
    (baseUrl) => {
      const { message } = refusal({ baseUrl });
      expect(message).toContain(
        `${NOT_HTTP} This host is in a private network: allowHttpToPrivateHosts: true takes it`,
      );
      expect(() => createClient({ ...given, baseUrl, allowHttpToPrivateHosts: true })).not.toThrow();
    },
  );

  it.each([
    ["clientId", undefined],
    ["clientId", ""],
    ["clientSecret", undefined],
    ["clientSecret", ""],
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
  ])("refuses %s: %s, naming the option", (option, value) => {
    expect(refusal({ [option]: value })).toMatchObject({ code: "invalid_option", fields: { option } });
  });

  it.each([
    [{ baseMs: -1 }, "backoff.baseMs"],
    [{ maxMs: 60_001 }, "backoff.maxMs"],
    [{ base: 1 }, "base"],
    [7, undefined],
  ])("refuses the backoff %j", (backoff, option) => {
    expect(refusal({ backoff }).fields.option).toBe(option);
  });

  it("names the likely option for a misspelled one", () => {
    expect(refusal({ clientsecret: "marked-secret" }).message).toContain('Did you mean "clientSecret"?');
    expect(refusal({ retries: 3 }).message).toContain("maxRetries");
  });

  it("refuses no options at all", () => {
    expect(() => createClient(undefined as never)).toThrow(SetupError);
  });
});
