/** What the inspector's JSON refuses to read, over HTTP. */
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../../src/stores/memory.ts";
import { openScene } from "./routes/scene.ts";

/** Posts to an inspector of an empty inbox; gives the status and the JSON. */
async function openInspector() {
  const scene = await openScene(memoryStore({ volatile: true }));
  return {
    async post(path: string, text: string) {
      const answer = await scene.postText(path, text, "reveal");
      return [answer.status, answer.json()] as const;
    },
    async get(path: string) {
      const answer = await scene.get(path);
      return [answer.status, answer.json()] as const;
    },
  };
}

const invalid = (message: string) => [400, { error: "invalid_request", message: expect.stringContaining(message) }];

describe.each(["events", "lanes", "lookup", "bulk"])("POST api/%s", (path) => {
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
  "lanes/1/unblock",
  "lanes/1/release",
  "lanes/1/reveal",
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
  it.each(["overview", "history", "groups", "lanes/1", "quarantine/1"])("refuses one: %s", async (path) => {
    const { get } = await openInspector();
    expect(await get(`${path}?reveal=true`)).toEqual(invalid("This route takes no query."));
    expect((await get(`${path}?`))[0]).toBe(path.endsWith("1") ? 404 : 200);
  });
});

describe("a request for rows", () => {
  it.each(["{}", '{"text":"  "}'])("looks nothing up for %s", async (body) => {
    const { post } = await openInspector();
    expect(await post("lookup", body)).toEqual(
      invalid('"text" must be the name of a lane, an id, a reference or a number.'),
    );
  });

  it("may ask for lanes without a number, and for no other thing that is none", async () => {
    const { post } = await openInspector();
    expect(await post("lanes", '{"peer":null}')).toEqual([200, { items: [], next: null }]);
    expect(await post("lanes", '{"peer":"+15550100002"}')).toEqual([200, { items: [], next: null }]);
    expect(await post("lanes", '{"peer":5}')).toEqual(
      invalid('"peer" must be a text of 1 to 512 characters, or null.'),
    );
    expect(await post("events", '{"peer":null}')).toEqual(invalid('"peer" must be a text'));
  });
});
