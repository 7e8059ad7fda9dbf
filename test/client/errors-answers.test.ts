import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { ResponseValidationError } from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { answerJson, failureOf, startClient, startServer } from "./support.ts";

const PHONE = "+14155550199";
const TEXT = "marked text of a message";

const sendRequest = () =>
  ({ sendFrom: "num_1", to: [PHONE], messageType: "SMS", text: TEXT, externalReference: "order-1" }) as const;

describe("a success that is not as specified", () => {
  const answers: [string, string][] = [
    ["no JSON", "<html>"],
    ["an empty body", ""],
    ["a list", "[]"],
    ["null", "null"],
    ["a text", '"ok"'],
  ];
  it.each(answers)("is a ResponseValidationError for %s, in every mode, and not asked for again", async (_, body) => {
    for (const validateResponses of ["warn", "throw", "off"] as const) {
      let calls = 0;
      const { client } = await startServer(
        (_, response) => {
          calls += 1;
          response.writeHead(200).end(body);
        },
        { validateResponses },
      );
      const error = await failureOf(client.numbers.list(), ResponseValidationError);
      expect(error).toMatchObject({ code: "invalid_response", operation: "numbers.list", attempts: 1 });
      expect(calls).toBe(1);
    }
  });

  it("is logged without values, and the data given, with validateResponses warn", async () => {
    const body = { apiClientId: 7, apiClientName: PHONE, new: PHONE };
    const { client, lines } = await startServer((_, response) => answerJson(response, 200, body));
    expect(await client.whoami()).toEqual(body);
    expect(lines.map(({ level }) => level)).toEqual(["warn"]);
    expect(lines[0]?.fields).toMatchObject({
      operation: "whoami",
      issues: expect.arrayContaining(["apiClientId: expected string"]),
    });
    expect(JSON.stringify(lines)).not.toContain(PHONE);
  });

  it("is logged ten times a second at most", async () => {
    const clock = createFakeClock();
    const { client, lines } = await startServer((_, response) => answerJson(response, 200, {}), { clock });
    await Promise.all(Array.from({ length: 50 }, () => client.whoami()));
    expect(lines.length).toBe(10);
  });

  it("is an error with validateResponses throw", async () => {
    const { client } = await startServer((_, response) => answerJson(response, 200, {}), {
      validateResponses: "throw",
    });
    const error = await failureOf(client.whoami(), ResponseValidationError);
    expect(error.issues).toContain("apiClientId: expected string");
  });

  it("passes without a word with validateResponses off", async () => {
    const { client, lines } = await startServer((_, response) => answerJson(response, 200, {}), {
      validateResponses: "off",
    });
    expect(await client.whoami()).toEqual({});
    expect(lines).toEqual([]);
  });

  it("is an error in every mode where the client itself needs the field", async () => {
    for (const validateResponses of ["warn", "throw", "off"] as const) {
      const { client } = await startServer((_, response) => answerJson(response, 200, { number: "n" }), {
        ...{ validateResponses, validateRequests: false },
      });
      await failureOf(client.numbers.list(), ResponseValidationError);
      await failureOf(client.numbers.get("n"), ResponseValidationError);
      await failureOf(client.numbers.update("n", {}), ResponseValidationError);
      await failureOf(client.messages.send({} as never), ResponseValidationError);
    }
  });

  it("is none with fields and values that nobody knows yet, which are kept", async () => {
    const { client, lines } = await startClient({
      validateResponses: "throw",
      fetch: async () => new Response('{"access_token":"t","numbers":[],"next":"n","results":[],"errors":[],"new":1}'),
    });
    const sent = await client.messages.send({ ...sendRequest() });
    expect(sent).toMatchObject({ new: 1, allRejected: true });
    expect(await client.numbers.list()).toEqual([]);
    expect(lines).toEqual([]);
  });

  it("keeps on its error what is shown only once, by name alone: a generated secret (WHK-13)", async () => {
    const answer = { enabled: true, generatedSecret: "marked-generated-secret" };
    const { client } = await startServer((_, response) => answerJson(response, 200, answer), {
      validateResponses: "throw",
    });
    const call = client.webhooks.update("inbound", { signingEnabled: true });
    const error = await failureOf(call, ResponseValidationError);
    expect(error.data).toEqual(answer);
    expect(`${inspect(error, { depth: 9, showHidden: true })}${JSON.stringify(error)}`).not.toContain("marked");
  });

  it("keeps the results of a send on its error, in every mode, and undefined for what is no JSON (SND-17)", async () => {
    const answer = { results: [{ to: "+14155550123", messageId: "msg_1", status: "QUEUED" }] };
    for (const validateResponses of ["warn", "throw", "off"] as const) {
      const { client } = await startServer((_, response) => answerJson(response, 202, answer), { validateResponses });
      expect((await failureOf(client.messages.send(sendRequest()), ResponseValidationError)).data).toEqual(answer);
    }
    const { client } = await startServer((_, response) => response.writeHead(200).end("<html>"));
    expect((await failureOf(client.whoami(), ResponseValidationError)).data).toBeUndefined();
  });
});
