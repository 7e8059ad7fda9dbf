/** The hint for an inbox without an event. */
import { describe, expect, it } from "vitest";
import { triggerCommand } from "../../../../src/tools/inspector/page/first-run.tsx";

describe("triggerCommand()", () => {
  it("names the address of the application that serves the page, not that of `oncehook inspect`, which receives nothing", () => {
    expect(triggerCommand({ origin: "https://ops.example.com", pathname: "/inspector" })).toBe(
      "npx oncehook trigger lifecycle --to https://ops.example.com/webhooks",
    );
    const pathname = "/inspector-4bf92f3577b34da6a3ce929d/";
    expect(triggerCommand({ origin: "http://127.0.0.1:4000", pathname })).toBe(
      "npx oncehook trigger lifecycle --to http://127.0.0.1:3000/webhooks",
    );
  });
});
