/** The node:http adapter: the contract, and what is its own. */
import { once } from "node:events";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { describe, expect, it, test } from "vitest";
import { nodeWebhook } from "../../adapters/node.ts";
import { adapterContract } from "../contracts/adapter.ts";
import type { MakeAdapterServer } from "../contracts/adapter-bench.ts";
import { openSocket, requestBytes } from "../contracts/adapter-bench.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { answerOf, memoryReceiver, SECRET, signedEvent } from "./receivers.ts";
import { bytesOf, serve } from "./serving.ts";
import { leaveUntaken } from "./untaken.ts";

type Prepared = IncomingMessage & { body?: unknown; rawBody?: unknown };

const jsonRoute: RequestListener = async (request, response) => {
  const text = (await bytesOf(request)).toString();
  try {
    response.setHeader("content-type", "application/json").end(JSON.stringify(JSON.parse(text)));
  } catch {
    response.writeHead(400).end();
  }
};

const makeServer: MakeAdapterServer = ({ receiver, bodyState }) => {
  const webhook = nodeWebhook(receiver);
  const prepare = async (request: Prepared) => {
    const bytes = await bytesOf(request);
    request.body = JSON.parse(bytes.toString());
    if (bodyState === "captured") request.rawBody = bytes;
  };
  return serve(async (request, response) => {
    if (request.url === "/json") return jsonRoute(request, response);
    if (bodyState !== "raw") await prepare(request);
    webhook(request, response);
  });
};

describe("nodeWebhook()", () => {
  const count = adapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(34);
  });

  it("gives tenant and route to an async keyring, and nothing else", async () => {
    const seen: unknown[] = [];
    const secrets = async (context: unknown) => {
      seen.push(context);
      return { current: { secret: SECRET, tenant: "client_1" } };
    };
    const { receiver } = memoryReceiver({ secrets });
    const webhook = nodeWebhook(receiver, { tenant: (request) => request.headers.host?.split(":")[0], route: "sms" });
    const { status } = await answerOf(webhook);
    expect([status, seen]).toEqual([200, [{ tenant: "127.0.0.1", route: "sms" }]]);
  });

  it("lets go of a connection whose answers are not taken", async () => {
    const { receiver } = memoryReceiver();
    const { server, port, close } = await serve(nodeWebhook(receiver));
    const sender = await leaveUntaken(server, port);
    expect(sender.socket.timeout).toBe(10_000);
    const closed = once(sender.socket, "close");
    // Its time is up.
    sender.socket.emit("timeout");
    await closed;
    sender.close();
    await close();
  });

  it("leaves no time-out to other requests of a connection whose answers were taken in the end", {
    tags: "full",
  }, async () => {
    const { receiver } = memoryReceiver();
    const { server, port, close } = await serve(nodeWebhook(receiver));
    server.keepAliveTimeout = 0;
    const sender = await leaveUntaken(server, port);
    sender.take();
    while (sender.socket.timeout !== 0) await new Promise(setImmediate);
    sender.close();
    await close();
  });

  it("answers 500 when the tenant option throws, and logs no more than the kind of error and its place", async () => {
    const { receiver, lines } = memoryReceiver();
    const tenant = () => {
      throw new TypeError("of +15550000001");
    };
    const answer = await answerOf(nodeWebhook(receiver, { tenant }));
    expect([answer.status, await answer.json()]).toEqual([500, { error: "misconfigured" }]);
    expect(lines).toEqual([
      {
        level: "error",
        fields: {
          reason: "TypeError",
          at: expect.arrayContaining([expect.stringMatching(/^tenant \(test\/adapters\/node\.test\.ts:\d+\)$/)]),
        },
        message: "The adapter's tenant option threw or did not return a string: the request was answered with 500.",
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain("+1555");
  });

  it.each([
    ["in two parts", (bytes: Buffer) => bytes.subarray(0, -1), 400],
    ["beyond the limit", () => Buffer.alloc(300_000), 413],
  ])("does not believe bytes that another reader kept %s", async (_what, kept, status) => {
    const { receiver, handled } = memoryReceiver();
    const webhook = nodeWebhook(receiver);
    const answer = await answerOf(async (request: Prepared, response) => {
      request.body = kept(await bytesOf(request));
      webhook(request, response);
    });
    expect([answer.status, handled]).toEqual([status, []]);
  });

  it("answers 500 when the application decodes the body to text", async () => {
    const { receiver, lines } = memoryReceiver();
    const webhook = nodeWebhook(receiver);
    const answer = await answerOf((request, response) => {
      request.setEncoding("utf8");
      webhook(request, response);
    });
    expect([answer.status, await answer.json()]).toEqual([500, { error: "raw_body_unavailable" }]);
    expect(lines.at(-1)?.message).toContain("as a Buffer in request.rawBody");
  });
});

describe("the end of a connection whose body is not read", () => {
  const refuse = async (request: Buffer) => {
    const { receiver } = memoryReceiver();
    const webhook = nodeWebhook(receiver);
    const exchanges: [IncomingMessage, ServerResponse][] = [];
    const server = await serve((incoming, response) => {
      exchanges.push([incoming, response]);
      webhook(incoming, response);
    });
    const connection = await openSocket(server.port);
    connection.send(request);
    const { status, headers } = await connection.answer();
    const [[incoming, outgoing] = []] = exchanges;
    if (incoming === undefined || outgoing === undefined) throw new Error("The server saw no request.");
    return { server, connection, incoming, outgoing, refusal: [status, headers.connection] };
  };
  const unread = requestBytes({ headers: [["Content-Length", "1000000"]] });

  it.each([
    ["64 KiB", Buffer.alloc(8_192, "x"), 8],
    ["64 chunks of a byte", Buffer.from("x"), 64],
  ])("comes after %s, when the sender goes on and on", async (_what, chunk, most) => {
    const { server, connection, incoming } = await refuse(unread);
    let ended = false;
    const end = connection.ended().finally(() => {
      ended = true;
    });
    let drained = 0;
    for (; !ended && drained <= 2 * most; drained += 1) {
      connection.send(chunk);
      await Promise.race([end, new Promise((resolve) => incoming.once("data", resolve))]);
    }
    await end;
    expect([drained >= most, drained <= most + 2], `${drained}`).toEqual([true, true]);
    await server.close();
  });

  it("comes as soon as the body is there after all", async () => {
    const { server, connection, outgoing } = await refuse(requestBytes({ headers: [["Content-Length", "5"]] }));
    const how = Promise.race(["finish", "close"].map((name) => once(outgoing, name).then(() => name)));
    connection.send("12345");
    expect([await how, await connection.ended()]).toEqual(["finish", "end"]);
    await server.close();
  });

  it("does not matter to the server when the sender resets it", async () => {
    const { server, connection, incoming } = await refuse(unread);
    const closed = new Promise((resolve) => incoming.once("close", resolve));
    connection.abort();
    await closed;
    await server.close();
  });

  it("comes at once for a request without a body", async () => {
    const { server, connection, refusal } = await refuse(requestBytes({ method: "GET" }));
    expect([refusal, await connection.ended()]).toEqual([[405, "close"], "end"]);
    await server.close();
  });
});

describe("nodeWebhook() on HTTP/2", () => {
  it("accepts, refuses a long body, and survives a stream that is reset", async () => {
    const { receiver, handled } = memoryReceiver();
    const webhook = nodeWebhook(receiver);
    const server = createHttp2Server((request, response) =>
      webhook(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    );
    const port = await listenOnLoopback(server);
    const session = connect(`http://127.0.0.1:${port}`);
    const post = async (headers: Record<string, string>, body: Buffer, finish: "end" | "write") => {
      const stream = session.request({ ":method": "POST", ":path": "/webhooks", ...headers });
      stream.on("error", () => {});
      stream[finish](body);
      const [answer] = await once(stream, "response");
      if (finish === "write") stream.destroy(new Error("enough"));
      return answer[":status"];
    };
    const { body, headers } = signedEvent();
    expect(await post(headers, body, "end")).toBe(200);
    expect(await post(headers, Buffer.alloc(300_000), "end")).toBe(413);
    expect(await post({ ...headers, "x-service-timestamp": "1" }, body, "write")).toBe(401);
    expect(await post({ ...signedEvent().headers, ...headers }, body, "end")).toBe(200);
    expect(handled.length).toBe(1);
    session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});
