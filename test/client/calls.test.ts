import { describe, expect, it, onTestFinished } from "vitest";
import { type Call, type Client, InvalidArgumentError, ServerError } from "../../src/client/index.ts";
import { VERSION } from "../../src/internal/package.ts";
import { answerJson, failureOf, SEND_PATH, sendOf, startClient, startServer, TOKEN_PATH } from "./support.ts";

describe("createClient()", () => {
  it("makes no request before the first call", async () => {
    const { requests } = await startClient();
    expect(requests).toEqual([]);
  });

  it("follows the recommended first use: token, whoami, numbers, send by number id, outcome by webhook (CLI-10)", async () => {
    const { client, emulator, requests } = await startClient();
    const whoami = await client.whoami();
    expect(whoami.apiClientStatus).toBe("ACTIVE");
    const numbers = await client.numbers.list();
    const usable = numbers.find((number) => number.numberId === emulator.fixtures.numbers.full);
    const sent = await client.messages.send(sendOf(emulator, { sendFrom: usable?.numberId ?? "" }));
    expect(sent.results).toMatchObject([{ to: "+14155550123", status: "QUEUED" }]);
    await emulator.clock.advance(10_000);
    const [first] = sent.results;
    const types = emulator.control.events({ messageId: first?.messageId }).map((event) => event.eventType);
    expect(types).toEqual(["message.queued", "message.sent", "message.delivery"]);
    expect(requests.map(({ path }) => path)).toEqual([TOKEN_PATH, "/api/core/whoami", "/api/core/numbers", SEND_PATH]);
  });

  it("lists all numbers as an array, without a cursor (NUM-4)", async () => {
    const { client, emulator } = await startClient();
    const numbers = await client.numbers.list();
    expect(Array.isArray(numbers)).toBe(true);
    expect(numbers.map(({ numberId }) => numberId)).toContain(emulator.fixtures.numbers.full);
  });

  it("picks one number out of the list, or null", async () => {
    const { client, emulator } = await startClient();
    const { full, foreign } = emulator.fixtures.numbers;
    expect(await client.numbers.get(full)).toMatchObject({ numberId: full, smsEnabled: true });
    expect(await client.numbers.get(foreign)).toBeNull();
  });

  it("searches the whole inventory without filters", async () => {
    const { client } = await startClient();
    const found = await client.numbers.search();
    expect(found.groups.length).toBeGreaterThan(0);
    expect(Number.isInteger(found.requestedQuantity)).toBe(true);
  });

  it("updates a number with the request's own spelling, and reads the response's (CLI-8)", async () => {
    const { client, emulator, requests } = await startClient();
    const { noCampaign } = emulator.fixtures.numbers;
    const number = await client.numbers.update(noCampaign, { campaignregId: "C123" });
    expect(number?.campaignRegId).toBe("C123");
    expect(requests.at(-1)?.body).toBe('{"campaignregId":"C123"}');
  });

  it("gives null when an update shows no number, and get() reads it again (UPD-11, UPD-13)", async () => {
    const { client, emulator } = await startClient({ emulator: { unspecified: { updateReturnsNull: true } } });
    const { full } = emulator.fixtures.numbers;
    expect(await client.numbers.update(full, { mmsEnabled: false })).toBeNull();
    expect(await client.numbers.get(full)).toMatchObject({ mmsEnabled: false });
  });

  it("reads and changes the webhook defaults", async () => {
    const { client } = await startClient();
    const updated = await client.webhooks.update("delivery", {
      endpointUrl: "http://127.0.0.1:9/webhooks",
      enabled: true,
      signingEnabled: true,
      secret: "a-secret-of-your-own-32-characters",
    });
    expect(updated).toMatchObject({ enabled: true, hasCurrentSecret: true });
    const { defaults } = await client.webhooks.get();
    expect(defaults.delivery).toEqual(updated);
    expect(defaults.inbound.enabled).toBe(false);
  });

  it("gives rejected recipients as data, and as an error on request (CLI-9)", async () => {
    const { client, emulator } = await startClient();
    const sent = await client.messages.send(sendOf(emulator, { to: ["+14155550123", "nobody"] }));
    expect(sent.errors).toMatchObject([{ to: "nobody", error: { code: "INVALID_RECIPIENT" } }]);
    expect(sent.allRejected).toBe(false);
    expect(() => sent.throwIfRejected()).toThrow("1 of 2 recipients were rejected");
  });

  it("keeps a path in the base address (GEN-13)", async () => {
    const { client, requests } = await startClient({ emulator: { basePath: "/sms" } });
    await client.whoami();
    expect(requests.map(({ path }) => path)).toEqual([`/sms${TOKEN_PATH}`, "/sms/api/core/whoami"]);
  });

  it("works over HTTP as through handle", async () => {
    const { client, emulator } = await startClient({ emulator: { port: 0 } });
    const sent = await client.messages.send(sendOf(emulator));
    expect(sent.results.length).toBe(1);
  });
});

describe("a Call", () => {
  it("tells the answer and the number of attempts with withResponse()", async () => {
    const { client } = await startClient();
    const { data, response, attempts } = await client.whoami().withResponse();
    expect(data.apiClientStatus).toBe("ACTIVE");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toContain("application/json");
    expect(attempts).toBe(1);
  });

  it("can be awaited both ways, and is one request", async () => {
    const { client, sentTo } = await startClient();
    const call = client.whoami();
    const [data, answered] = await Promise.all([call, call.withResponse()]);
    expect(answered.data).toBe(data);
    expect(sentTo("/api/core/whoami").length).toBe(1);
  });

  it("is a promise, and is made whether or not it is awaited", async () => {
    const { client, sentTo } = await startClient();
    const call: Promise<unknown> = client.whoami();
    expect(call).toBeInstanceOf(Promise);
    while (sentTo("/api/core/whoami").length === 0) await new Promise(setImmediate);
    await call;
  });

  it("that fails is told once: withResponse() leaves no unhandled rejection behind", async () => {
    const unhandled: unknown[] = [];
    const keep = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", keep);
    onTestFinished(() => void process.off("unhandledRejection", keep));
    const { client } = await startServer((_, response) => answerJson(response, 500, {}), { maxRetries: 0 });
    await failureOf(client.whoami().withResponse(), ServerError);
    await failureOf(client.whoami(), ServerError);
    await failureOf(Promise.all([client.whoami(), client.whoami().withResponse()]), ServerError);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
  });

  it.each([
    ["the call", (call: Call<unknown>) => call],
    ["withResponse()", (call: Call<unknown>) => call.withResponse()],
  ])("that fails and that nobody awaits is an unhandled rejection, by %s", async (_, taken) => {
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    onTestFinished(() => {
      process.removeAllListeners("unhandledRejection");
      for (const other of others) process.on("unhandledRejection", other);
    });
    const unhandled: unknown[] = [];
    process.on("unhandledRejection", (reason) => unhandled.push(reason));
    const { client } = await startClient({ validateRequests: false });
    void taken(client.messages.send(undefined as never));
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(unhandled).toMatchObject([{ code: "invalid_argument" }]);
  });

  it("rejects when its arguments cannot be read, and throws nothing", async () => {
    const thrower = () => {
      throw new Error("unreadable");
    };
    const traps = { get: thrower, has: thrower, ownKeys: thrower, getPrototypeOf: thrower };
    const proxy = new Proxy({}, traps) as never;
    const getter = (name: string) => Object.defineProperty({}, name, { enumerable: true, get: thrower }) as never;
    const signal = Object.defineProperty({ addEventListener: () => {} }, "aborted", { get: thrower }) as never;
    const { client, emulator, requests } = await startClient();
    const calls = [
      () => client.whoami(proxy),
      () => client.whoami(getter("signal")),
      () => client.whoami({ signal }),
      () => client.webhooks.get(getter("signal")),
      () => client.webhooks.update("inbound", proxy),
      () => client.webhooks.update("inbound", getter("secret")),
      () => client.webhooks.update(Symbol("inbound") as never, { signingEnabled: true }),
      () => client.numbers.list(proxy),
      () => client.numbers.get("num_1", proxy),
      () => client.numbers.search(getter("state")),
      () => client.numbers.update("num_1", proxy),
      () => client.numbers.update("num_1", {}, getter("signal")),
      () => client.messages.send(getter("to")),
      () => client.messages.send(sendOf(emulator), getter("idempotencyKey")),
    ];
    for (const make of calls) {
      const error = await failureOf(make(), InvalidArgumentError);
      expect(error).toMatchObject({ attempts: 0, message: expect.stringContaining("cannot be ") });
    }
    expect(requests).toEqual([]);
  });

  it("never throws, but rejects", async () => {
    const { client } = await startClient();
    const calls = [
      () => client.whoami(7 as never),
      () => client.webhooks.get(null as never),
      () => client.webhooks.update(undefined as never, undefined as never),
      () => client.numbers.list([] as never),
      () => client.numbers.get(undefined as never),
      () => client.numbers.search(null as never),
      () => client.numbers.update(null as never, null as never),
      () => client.messages.send(undefined as never),
    ];
    for (const make of calls) {
      const call: Call<unknown> = make();
      expect(await failureOf(call, InvalidArgumentError)).toMatchObject({ attempts: 0, code: "invalid_argument" });
    }
  });
});

describe("what is refused always, also with validateRequests false", () => {
  const refused = async (make: (client: Client) => Call<unknown>) => {
    const { client, requests } = await startClient({ validateRequests: false });
    const error = await failureOf(make(client), InvalidArgumentError);
    expect(requests).toEqual([]);
    return error;
  };
  const request = { sendFrom: "n", to: ["+14155550123"], messageType: "SMS", externalReference: "r" } as const;

  it.each(["", " ", "a b", "a\nb", "é", "k".repeat(256), 7, null, {}])(
    "an idempotency key that no header can carry: %j (SND-1)",
    async (idempotencyKey) => {
      const error = await refused((client) => client.messages.send(request, { idempotencyKey } as never));
      expect(error.issues).toEqual(["options.idempotencyKey: must be 1 to 255 visible ASCII characters"]);
      expect(error.idempotencyKey).toBeNull();
    },
  );

  it.each(["", ".", "..", "\ud800", 7, null, undefined])(
    "a numberId that no path can hold: %j (UPD-16)",
    async (id) => {
      const { message } = await refused((client) => client.numbers.update(id as never, {}));
      expect(message).toContain("numberId: must be a numberId as numbers.list() shows it");
      await refused((client) => client.numbers.get(id as never));
    },
  );

  it.each(["outbound", "Inbound", "../numbers", "", undefined, 7])("an unknown webhook kind: %j", async (kind) => {
    const error = await refused((client) => client.webhooks.update(kind as never, { signingEnabled: true }));
    expect(error.issues[0]).toContain('kind: must be "inbound" or "delivery"');
  });

  it("options that are none, such as the index of map()", async () => {
    const { client } = await startClient();
    const [first] = ["num_1"].map((id, index) => client.numbers.get(id, index as never));
    const error = await failureOf(first as Call<unknown>, InvalidArgumentError);
    expect(error.issues).toEqual(["options: must be an object, such as { signal }"]);
  });

  it("options that nobody knows, for a misspelled key would send twice", async () => {
    const error = await refused((client) => client.messages.send(request, { idempotencykey: "k" } as never));
    expect(error.issues[0]).toContain('Did you mean "idempotencyKey"?');
    await refused((client) => client.whoami({ signal: {} } as never));
    await refused((client) => client.whoami({ idempotencyKey: "k" } as never));
  });

  it("what cannot be written as JSON", async () => {
    const circle: Record<string, unknown> = {};
    circle.circle = circle;
    for (const value of [circle, { n: 1n }, undefined, () => {}]) {
      await refused((client) => client.messages.send(value as never));
    }
  });
});

describe("with validateRequests false", () => {
  it("the service decides what is sent, byte for byte as the caller wrote it (SND-3, CLI-8)", async () => {
    const { client, requests } = await startClient({ validateRequests: false });
    const update = { campaignRegId: "C1", campaignregId: "C2", new: [1] };
    await client.numbers.update("num_x", update as never).catch(() => {});
    expect(requests.at(-1)?.body).toBe('{"campaignRegId":"C1","campaignregId":"C2","new":[1]}');
    await client.messages.send({ sendFrom: "+14155550100" } as never).catch(() => {});
    expect(requests.at(-1)?.path).toBe(SEND_PATH);
  });
});

describe("the path of a number's update", () => {
  it.each(["a/b", "a?b=c#d", "a%2Fb", "a b", "é", "a;b=c,d", "~!*'()", "...", "%"])(
    "holds %j encoded once (UPD-16)",
    async (id) => {
      let url = "";
      const { client } = await startServer((request, response) => {
        url = request.url ?? "";
        answerJson(response, 200, { number: null });
      });
      await client.numbers.update(id, {});
      expect(url.split("/").length).toBe(5);
      expect(decodeURIComponent(url)).toBe(`/api/core/numbers/${id}`);
    },
  );
});

describe("the headers of a call", () => {
  it("say what is sent and asked for, and carry no more than the service needs (GEN-1)", async () => {
    const { client, emulator, requests } = await startClient();
    await client.messages.send(sendOf(emulator), { idempotencyKey: "order-1" });
    await client.whoami();
    const [, send, whoami] = requests.map(({ headers }) => Object.fromEntries(headers));
    const authorization = expect.stringMatching(/^Bearer \S+$/);
    const always = { accept: "application/json", "user-agent": `oncehook/${VERSION}`, authorization };
    expect(send).toEqual({ ...always, "content-type": "application/json", "idempotency-key": "order-1" });
    expect(whoami).toEqual(always);
  });
});
