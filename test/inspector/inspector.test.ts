/** The inspector as a whole, over real HTTP. */
import { describe, expect, it } from "vitest";
import { createInspector } from "../../src/inspector/index.ts";
import { memoryBench } from "../receiver/bench.ts";
import { mounted } from "./support/mounted.ts";

describe("createInspector()", () => {
  it("gives the page, and the inbox at a glance", async () => {
    const { receiver, clock, logger } = memoryBench();
    const server = await mounted((origin) =>
      createInspector({ inbox: receiver.inbox, authorize: () => "read", origins: [origin], clock, logger }),
    );
    const page = await server.ask();
    expect(page).toMatchObject({ status: 200, headers: { "content-type": "text/html; charset=utf-8" } });
    const overview = await server.ask({ url: "/inspector/api/overview" });
    expect(overview.json()).toMatchObject({ access: "read", by: "inspector", gauges: { pending: 0 }, slots: {} });
  });
});
