import { describe, expect, it } from "vitest";
import { isLoopback } from "../../src/internal/loopback.ts";

describe("isLoopback()", () => {
  it.each(["localhost", "::1", "127.0.0.1", "127.255.10.3"])("knows %s", (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each([
    "",
    "example.com",
    "128.0.0.1",
    "127.0.0",
    "127.0.0.1.example.com",
    "x127.0.0.1",
    "127.0.0.1234",
    "::2",
    "127.a.b.c",
  ])("takes %j for another machine", (host) => {
    expect(isLoopback(host)).toBe(false);
  });
});
