import { describe, expect, it } from "vitest";
import { isBadPort, isLoopback, isPrivateHost } from "../../src/internal/network.ts";

describe("isLoopback()", () => {
  it.each(["localhost", "::1", "127.0.0.1", "127.255.10.3", "api.localhost", "a.b.LOCALHOST"])("knows %s", (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each([
    ...["", "example.com", "128.0.0.1", "127.0.0", "127.0.0.1.example.com", "x127.0.0.1", "127.0.0.1234", "::2"],
    ...["localhost.example.com", "notlocalhost", "x.localhost.example", "127.a.b.c"],
  ])("takes %j for another machine", (host) => {
    expect(isLoopback(host)).toBe(false);
  });
});

describe("isPrivateHost()", () => {
  it.each([
    ...["emulator", "emulator.", "host.docker.internal", "printer.local", "api.ns.svc", "api.ns.svc.cluster.local"],
    ...["nas.lan", "nas.home.arpa", "api.test", "api.localhost", "10.1.2.3", "172.16.0.1", "172.31.255.255"],
    ...["192.168.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.0", "[::1]", "[fd00::1]", "[fe80::1]", "[::ffff:a01:203]"],
  ])("knows %s", (host) => {
    expect(isPrivateHost(host)).toBe(true);
  });

  it.each([
    ...[
      ...["example.com", "internal.example.com", "local.example", "mytest.example", "8.8.8.8", "172.32.0.1"],
      "100.128.0.1",
    ],
    ...["[2001:4860::1]", "[::ffff:808:808]", "10.1.2.3.example.com", "latest.io"],
  ])("takes %s for a public host", (host) => {
    expect(isPrivateHost(host)).toBe(false);
  });
});

// What `fetch` itself says of a port that it refuses: the words are undici's, and may change with Node.

const failureOf = (url: string) => fetch(url).then(String, (error: unknown) => error);

it("knows a port that fetch refuses from one where nothing listens", async () => {
  expect(isBadPort(await failureOf("http://127.0.0.1:6000/"))).toBe(true);
  expect(isBadPort(await failureOf("http://127.0.0.1:2/"))).toBe(false);
  expect(isBadPort("bad port")).toBe(false);
});
