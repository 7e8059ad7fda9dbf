import diagnostics from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../../../src/internal/logger.ts";
import type { Resolve } from "../../../../src/messaging/emulator/delivery/transport.ts";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { call, ready, send, start, tokenOf } from "../support.ts";
import { OK, outgoing, rawReceiver, receiver, transportWith, until } from "../transport-receiver.ts";

const BLOCKED = { status: null, error: "blocked", headers: {}, body: "" };

/** Addresses of every plain connection that this process tries from now on, and how many sockets it makes for them. */
function watchAttempts(): { readonly addresses: string[]; sockets: number } {
  const seen = { addresses: [] as string[], sockets: 0 };
  const watch = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    seen.sockets += 1;
    socket.on("connectionAttempt", (address: string) => seen.addresses.push(address));
  };
  diagnostics.subscribe("net.client.socket", watch);
  onTestFinished(() => void diagnostics.unsubscribe("net.client.socket", watch));
  return seen;
}

const addressesOf =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

/** This machine's own address beyond loopback, which it can both listen on and must not reach. */
const outer = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).filter(({ internal }) => !internal));
const own = outer.find(({ address }) => !address.startsWith("fe80"));
const ownPrivate = outer.find(({ address }) => /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|f[cd])/.test(address));

describe("a literal address that is not allowed", () => {
  it.each([
    ...["http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://[::ffff:169.254.169.254]/"],
    ...["http://10.0.0.1/", "http://8.8.8.8/", "https://8.8.8.8/", "http://user:pass@127.0.0.1/"],
    ...["http://[fe80::1%25eth0]/", "ftp://127.0.0.1/", "unix:/var/run/docker.sock"],
  ])("%s leads to no connection", async (url) => {
    const attempts = watchAttempts();
    expect(await transportWith().send(outgoing(url))).toEqual(BLOCKED);
    expect(attempts).toEqual({ addresses: [], sockets: 0 });
  });
});

describe("a name", () => {
  it.each([
    ...["169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "10.0.0.1", "8.8.8.8", "0.0.0.0"],
    ...[
      "127.0.0.1 10.0.0.1",
      "10.0.0.1 127.0.0.1",
      "::1 169.254.169.254 127.0.0.1",
      "not-an-address",
      "0177.0.0.1",
      "",
    ],
  ])("of %j leads to no connection", async (addresses) => {
    const transport = transportWith({ resolve: addressesOf(...addresses.split(" ").filter(Boolean)) });
    const attempts = watchAttempts();
    expect(await transport.send(outgoing("http://receiver.test/"))).toEqual(BLOCKED);
    expect(attempts).toEqual({ addresses: [], sockets: 1 });
  });

  it.skipIf(own === undefined).each(["http", "https"])("of an outer address is not reached by %s", async (scheme) => {
    const { address = "" } = own ?? {};
    const { port, connections } = await rawReceiver((socket) => socket.write(OK), address);
    for (const addresses of [[address], ["127.0.0.1", address], [address, "127.0.0.1"]]) {
      const transport = transportWith({ resolve: addressesOf(...addresses) });
      expect(await transport.send(outgoing(`${scheme}://receiver.test:${port}/`))).toEqual(BLOCKED);
    }
    expect(connections).toHaveLength(0);
  });

  it("that points elsewhere after its first look-up is looked at again", async () => {
    const { url, got } = await receiver((response) => response.writeHead(200, { connection: "close" }).end());
    const answers = ["127.0.0.1", "169.254.169.254", "127.0.0.1"];
    const transport = transportWith({ resolve: () => addressesOf(answers.shift() ?? "")("") });
    const target = outgoing(url.replace("127.0.0.1", "receiver.test"));
    const attempts = watchAttempts();
    expect(await transport.send(target)).toMatchObject({ status: 200 });
    expect(await transport.send(target)).toEqual(BLOCKED);
    expect(await transport.send(target)).toMatchObject({ status: 200 });
    expect(attempts.addresses).toEqual(["127.0.0.1", "127.0.0.1"]);
    expect(got).toHaveLength(2);
  });

  it.each(["127.0.0.1", "::1"])("localhost reaches a receiver that listens on %s alone", async (host) => {
    const { port, got } = await receiver(undefined, host);
    const resolve = addressesOf("::1", "127.0.0.1");
    expect(await transportWith({ resolve }).send(outgoing(`http://localhost:${port}/`))).toMatchObject({ status: 200 });
    expect(got[0]?.request.headers.host).toBe(`localhost:${port}`);
  });

  it("localhost is looked up by the system", async () => {
    const { port } = await receiver();
    expect(await transportWith().send(outgoing(`http://localhost:${port}/`))).toMatchObject({ status: 200 });
  });
});

describe("an allowed address", () => {
  it.each(["127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "127.0.0.1."])("is reached as %s", async (host) => {
    const { port, got } = await receiver();
    expect(await transportWith().send(outgoing(`http://${host}:${port}/`))).toMatchObject({ status: 200 });
    expect(got).toHaveLength(1);
  });

  it.skipIf(ownPrivate === undefined)("is a private one in an opened range, and no other", async () => {
    const { address = "" } = ownPrivate ?? {};
    const { url, connections } = await receiver(undefined, address);
    expect(await transportWith().send(outgoing(url))).toEqual(BLOCKED);
    expect(connections).toHaveLength(0);
    const allowPrivateTargets = [`${address}/${address.includes(":") ? 128 : 32}`];
    expect(await transportWith({ allowPrivateTargets }).send(outgoing(url))).toMatchObject({ status: 200 });
  });
});

describe("the connected address", () => {
  /** Shows loopback to whoever looks first, and another address to whoever connects. */
  const twoFaced = (address: string): Resolve => {
    return async () => {
      let looks = 0;
      const family = address.includes(":") ? 6 : 4;
      return [
        {
          family,
          get address() {
            return looks++ === 0 ? "127.0.0.1" : address;
          },
        },
      ];
    };
  };

  it.skipIf(own === undefined).each(["http", "https"])("is checked before a byte of %s", async (scheme) => {
    const { address = "" } = own ?? {};
    const { port, connections, texts } = await rawReceiver((socket) => socket.write(OK), address);
    const transport = transportWith({ resolve: twoFaced(address) });
    expect(await transport.send(outgoing(`${scheme}://receiver.test:${port}/`))).toEqual(BLOCKED);
    // The connection was made, since the look-up was deceived; nothing went over it.
    await until(() => connections[0]?.destroyed === true);
    expect(texts).toEqual([""]);
  });
});

const METADATA = "http://169.254.169.254/latest/meta-data/";
const ALL_ATTEMPTS_MS = 81 * 60_000;

describe("a webhook to an address that is not allowed", () => {
  it.each([
    ["a metadata address, whatever is open", METADATA, { allowPublicTargets: true, allowPrivateTargets: ["fc00::/7"] }],
    ["a private address", "http://10.0.0.1/hooks", {}],
    ["a public address", "https://8.8.8.8/hooks", {}],
    ["a URL with credentials", "http://user:pass@127.0.0.1/hooks", {}],
  ])("is tried by the plan and logged as blocked: %s (DLV-6, DLV-7)", async (_, deliveryUrl, options) => {
    const emulator = await start({ deliveryUrl, lifecycle: "manual", ...options });
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.advance(ALL_ATTEMPTS_MS);
    const [delivery] = emulator.control.deliveries();
    expect(delivery).toMatchObject({ state: "failed", scheduledAttempts: 5 });
    expect(delivery?.attempts.map(({ status, error }) => [status, error])).toEqual(Array(5).fill([null, "blocked"]));
  });
});

const PRIVATE = "names a private address: allowPrivateTargets opens its network";

describe("a target that will be blocked", () => {
  const lastWarnings = (emulator: Emulator) => emulator.control.requests().at(-1)?.warnings;

  it("is told of when the emulator starts, with the reason and without the URL", async () => {
    const warned: unknown[] = [];
    const logger = { ...silentLogger, warn: (...line: unknown[]) => void warned.push(line) };
    await start({ logger, inboundUrl: "http://user:pass@127.0.0.1/hooks", deliveryUrl: "http://10.1.2.3/hooks" });
    expect(warned).toEqual([
      [
        { option: "inboundUrl", reason: "holds credentials" },
        "Webhooks to inboundUrl will be blocked: it holds credentials.",
      ],
      [{ option: "deliveryUrl", reason: PRIVATE }, `Webhooks to deliveryUrl will be blocked: it ${PRIVATE}.`],
    ]);
    warned.length = 0;
    const open = { allowPrivateTargets: ["10.0.0.0/8"], allowPublicTargets: true };
    await start({ logger, ...open, inboundUrl: "http://receiver.test/hooks", deliveryUrl: "http://10.1.2.3/hooks" });
    await start({ logger });
    expect(warned).toEqual([]);
  });

  it.each(["inbound", "delivery"])("gets a warning in the log of the update of the %s webhook", async (kind) => {
    const { emulator, token } = await ready();
    const update = (fields: object) =>
      call(emulator, "PATCH", `/api/core/webhooks/${kind}`, { token, body: { signingEnabled: true, ...fields } });
    expect((await update({ endpointUrl: "http://10.1.2.3/hooks" })).status).toBe(200);
    expect(lastWarnings(emulator)).toEqual([`webhooks to this endpointUrl will be blocked: it ${PRIVATE}`]);
    for (const fields of [{}, { endpointUrl: null }, { endpointUrl: "http://127.0.0.1/hooks" }]) {
      await update(fields);
      expect(lastWarnings(emulator)).toEqual([]);
    }
  });

  it("gets a warning in the log of the update of a number", async () => {
    const { emulator, token } = await ready();
    const update = (body: object) =>
      call(emulator, "PATCH", `/api/core/numbers/${emulator.fixtures.numbers.full}`, { token, body });
    const urls = { webhookInboundOverride: METADATA, webhookDeliveryOverride: "https://8.8.8.8/" };
    expect((await update(urls)).status).toBe(200);
    expect(lastWarnings(emulator)).toEqual([
      "webhooks to this webhookInboundOverride will be blocked: it names a link-local or metadata address, which webhooks never reach",
      "webhooks to this webhookDeliveryOverride will be blocked: it names a public address: allowPublicTargets opens them",
    ]);
    await update({ webhookInboundOverride: null, webhookDeliveryOverride: "http://receiver.test/", smsEnabled: true });
    expect(lastWarnings(emulator)).toEqual([]);
  });
});
