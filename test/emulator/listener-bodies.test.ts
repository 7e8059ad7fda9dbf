/** Long, streamed and broken bodies over real sockets (GEN-10). */
import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { writeResponse } from "../../src/emulator/http/listener.ts";
import type { Emulator } from "../../src/emulator/index.ts";
import { connectTo, listen, readAll } from "./raw-socket.ts";
import { tokenOf } from "./support.ts";

const MIB = 1_048_576;
const SEARCH = "/api/core/numbers/search";

function post(emulator: Emulator, token: string, body: string | Uint8Array): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return fetch(`${emulator.url}${SEARCH}`, { method: "POST", headers, body: body as string });
}

/** A search of exactly so many bytes. */
function searchOf(length: number): string {
  return `{"city":"${"x".repeat(length - 11)}"}`;
}

describe("bodies over a socket", () => {
  it("reads a body of 1 MiB, and refuses one byte more (GEN-10)", async () => {
    const emulator = await listen();
    const token = await tokenOf(emulator);
    const fits = await post(emulator, token, searchOf(MIB));
    expect(await fits.text()).toContain("state"); // Read and understood: a city needs a state.
    const long = await post(emulator, token, searchOf(MIB + 1));
    expect(long.status).toBe(400);
    expect(await long.json()).toMatchObject({
      error: { code: "INVALID_REQUEST", message: expect.stringMatching("1 MiB") },
    });
  });

  it("answers while more is on its way, and reads the next request on the same connection (GEN-10)", async () => {
    const emulator = await listen();
    const token = await tokenOf(emulator);
    const socket = await connectTo(emulator);
    const head = `POST ${SEARCH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${3 * MIB}\r\n\r\n`;
    socket.write(`${head}${"x".repeat(2 * MIB)}`);
    const [first] = await once(socket, "data");
    expect(String(first)).toMatch(/^HTTP\/1\.1 400 /);
    socket.write("x".repeat(MIB));
    const rest = readAll(socket);
    socket.write("GET /api/core/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect((await rest).head).toMatch(/HTTP\/1\.1 401 /);
  });

  it("reads chunked bodies, and ones that come byte by byte", async () => {
    const emulator = await listen();
    const body = `grant_type=client_credentials&client_id=${emulator.clientId}&client_secret=${emulator.clientSecret}`;
    const headers = { "content-type": "application/x-www-form-urlencoded", connection: "close" };
    const outgoing = request(`${emulator.url}/api/auth/token`, { method: "POST", headers });
    for (const byte of body) outgoing.write(byte);
    outgoing.end();
    const [response] = await once(outgoing, "response");
    expect(response.statusCode).toBe(200);
    response.resume();
  });
});

describe("answers that are streams", () => {
  it("leaves no listener behind, however often it waits for its reader", async () => {
    const listeners: number[] = [];
    let outgoing: ServerResponse | undefined;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        listeners.push(
          ["close", "drain", "error"].reduce((sum, name) => sum + (outgoing?.listenerCount(name) ?? 0), 0),
        );
        if (listeners.length > 30) controller.close();
        else controller.enqueue(Buffer.alloc(MIB));
      },
    });
    const server = createServer((_, response) => {
      outgoing = response;
      void writeResponse(new Response(body), response);
    });
    server.listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect((await response.arrayBuffer()).byteLength).toBe(30 * MIB);
    // The first pieces are asked for ahead.
    expect(Math.max(...listeners.slice(5))).toBe(Math.min(...listeners.slice(5)));
  });
});
