/** What the inspector's JSON refuses to read, over HTTP through the node adapter. */
import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeInspector } from "../../../adapters/node.ts";
import { createInspector } from "../../../src/inspector/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { memoryBench } from "../../receiver/bench.ts";
import { listenOnLoopback } from "../../support/loopback.ts";
import { POST_HEADERS } from "../support/mounted.ts";

/** Posts to an inspector of an empty inbox; gives the status and the JSON. */
async function openInspector() {
  const { receiver } = memoryBench();
  receiver.onAny(() => {});
  await receiver.start();
  const { inbox } = receiver;
  const server = createServer();
  const origin = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  const authorize = () => ({ access: "reveal", by: "ann" }) as const;
  server.on("request", nodeInspector(createInspector({ inbox, authorize, origins: [origin], logger: silentLogger })));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${origin}/inspector/api/${path}`, init);
    return [response.status, await response.json()] as const;
  };
  const post = (path: string, body: string) =>
    ask(path, { method: "POST", headers: { ...POST_HEADERS, origin }, body });
  return { post, get: (path: string) => ask(path) };
}

const invalid = (message: string) => [400, { error: "invalid_request", message: expect.stringContaining(message) }];

describe.each(["events", "messages", "lookup", "bulk"])("POST api/%s", (path) => {
  it("refuses a body that is not JSON, and one that is too large", async () => {
    const { post } = await openInspector();
    expect(await post(path, '{"limit":')).toEqual(invalid("The body must be JSON."));
    const large = { error: "too_large", message: "The body is longer than 64 KiB." };
    expect(await post(path, JSON.stringify({ text: "x".repeat(65_536) }))).toEqual([413, large]);
  });
});

describe.each([
  "events/1/replay",
  "events/1/discard",
  "messages/1/unblock",
  "messages/1/release",
  "messages/1/reveal",
  "quarantine/1/replay",
  "quarantine/1/discard",
  "quarantine/1/reveal",
])("POST api/%s", (path) => {
  it("takes a body that is empty or an empty object, and does nothing for one that says more", async () => {
    const { post } = await openInspector();
    // There is no such row.
    for (const body of ["", "{}", " { }"]) expect((await post(path, body))[0], body).toBe(404);
    for (const body of ['{"dryRun":true}', "[]", "null", "1"])
      expect(await post(path, body), body).toEqual(
        invalid("This route takes no fields: the body must be {} or empty."),
      );
    expect(await post(path, "{")).toEqual(invalid("The body must be JSON."));
  });
});

describe("a GET that takes no query", () => {
  it.each(["overview", "history", "groups", "messages/1", "quarantine/1"])("refuses one: %s", async (path) => {
    const { get } = await openInspector();
    expect(await get(`${path}?reveal=true`)).toEqual(invalid("This route takes no query."));
    expect((await get(`${path}?`))[0]).toBe(path.endsWith("1") ? 404 : 200);
  });
});

describe("a request for rows", () => {
  it.each(["{}", '{"text":"  "}'])("looks nothing up for %s", async (body) => {
    const { post } = await openInspector();
    expect(await post("lookup", body)).toEqual(invalid('"text" must be a message id, a reference or a number.'));
  });

  it("may ask for messages without a number, and for no other thing that is none", async () => {
    const { post } = await openInspector();
    expect(await post("messages", '{"peer":null}')).toEqual([200, { items: [], next: null }]);
    expect(await post("messages", '{"peer":"+15550100002"}')).toEqual([200, { items: [], next: null }]);
    expect(await post("messages", '{"peer":5}')).toEqual(
      invalid('"peer" must be a text of 1 to 512 characters, or null.'),
    );
    expect(await post("events", '{"peer":null}')).toEqual(invalid('"peer" must be a text'));
  });

  it("says each field of its query once, as a number where it is one", async () => {
    const { get } = await openInspector();
    expect(await get("audit?limit=2")).toEqual([200, []]);
    expect(await get("audit?limit=two")).toEqual(invalid('"limit" must be a whole number'));
    expect(await get("audit?limit=2&limit=3")).toEqual(invalid("Each field of the query may appear only once."));
  });
});
