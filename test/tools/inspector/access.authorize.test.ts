/** The application's authorization, over real HTTP: when it is called, and what each of its answers allows. */
import { describe, expect, it } from "vitest";
import { inspected } from "./support/scene.ts";

const OVERVIEW = "/inspector/api/overview";

describe("authorize", () => {
  const answerTo = async (grant: unknown) => {
    const scene = await inspected({ authorize: () => grant as never });
    return { ...scene, answer: await scene.server.ask({ url: OVERVIEW }) };
  };

  it.each([
    ["read", "read"],
    ["reveal", "reveal"],
    [Promise.resolve("act"), "act"],
    [{ access: "act" }, "act"],
  ])("that gives %j lets in", async (grant, access) => {
    const { answer, log } = await answerTo(grant);
    expect(answer.json()).toMatchObject({ access, by: "inspector" });
    expect(log).toEqual([]);
  });

  it.each([
    ["ann@example.com", "ann@example.com"],
    ["", "inspector"],
    ["\u0000\r\n\t", "inspector"],
    ["an\r\nn\u001b[31m\u202e\u2028!", "ann[31m!"],
    [`${"é".repeat(99)}😀x`, `${"é".repeat(99)}😀`],
    ["\ud800lone", "lone"],
  ])("that names %j shows it without what no log can hold", async (given, by) => {
    expect((await answerTo({ access: "act", by: given })).answer.json()).toMatchObject({ access: "act", by });
  });

  it("denies by false, without a log line", async () => {
    const { answer, log } = await answerTo(false);
    expect([answer.status, log]).toEqual([401, []]);
  });

  it.each([[undefined], [null], [true], [1], ["READ"], ["admin"], [""], [{}], [{ by: "ann" }], [["read"]]])(
    "denies by %j, and logs that mistake once",
    async (grant) => {
      const { answer, server, log } = await answerTo(grant);
      expect(answer.status).toBe(401);
      expect(await server.ask()).toMatchObject({ status: 401 });
      expect(log).toMatchObject([{ level: "error", fields: { code: "authorize_mistake" } }]);
    },
  );

  it.each([
    [{ access: "toString", by: "ann" }],
    [{ access: "read", by: 7 }],
    [{ access: ["reveal"], by: "ann" }],
    [{ access: "__proto__" }],
  ])("that gives %j denies", async (grant) => {
    expect((await answerTo(grant)).answer.status).toBe(401);
  });

  it.each([
    ["throws", thrown],
    ["rejects", () => Promise.reject(failure())],
  ])("that %s denies, and only the error's name and code are logged", async (_how, authorize) => {
    const { server, log } = await inspected({ authorize: authorize as never });
    expect(await server.ask({ url: OVERVIEW })).toMatchObject({ status: 401 });
    expect(log).toMatchObject([{ level: "warn", fields: { code: "authorize_failed" } }]);
    expect(log[0]?.message).toContain("(TypeError, ECONNREFUSED)");
    expect(JSON.stringify(log)).not.toContain("token-1234");
  });

  it("is given the framework's own request", async () => {
    const { server } = await inspected({
      authorize: ({ headers }) => (headers.cookie === "session=7" ? { access: "read", by: "ann" } : false),
    });
    expect(await server.ask({ url: OVERVIEW })).toMatchObject({ status: 401 });
    const known = await server.ask({ url: OVERVIEW, headers: { cookie: "session=7" } });
    expect(known.json()).toMatchObject({ by: "ann" });
  });

  it("is asked for each request anew", async () => {
    let grant: "read" | false = "read";
    const { server } = await inspected({ authorize: () => grant });
    expect(await server.ask()).toMatchObject({ status: 200 });
    grant = false;
    expect(await server.ask()).toMatchObject({ status: 401 });
  });
});

function failure(): Error {
  return Object.assign(new TypeError("The cookie token-1234 is odd."), { code: "ECONNREFUSED" });
}

function thrown(): never {
  throw failure();
}
