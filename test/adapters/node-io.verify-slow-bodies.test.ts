/** `…Verify` and slow bodies, on real HTTP: what unfinished bodies may hold together, and how long each may take. */
import type { RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import express from "express";
import fastify from "fastify";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { expressVerify } from "../../adapters/express.ts";
import { fastifyVerify, leaveBodiesUnread } from "../../adapters/fastify.ts";
import { fetchVerify } from "../../adapters/fetch.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { idleTurns } from "../receiver/bench.ts";
import { rows } from "../setup/form.ts";
import { bridge } from "./fetch-bridge.ts";
import { SECRET, signedEvent } from "./receivers.ts";
import { serve } from "./serving.ts";

const MIB = 1024 * 1024;
/** More than the 64 MiB that unfinished bodies may hold together. */
const STALLED = 80;
const DRIPPING = 10;
const options = { secrets: SECRET, logger: silentLogger, maxBodyBytes: MIB };

const LISTENERS: Readonly<Record<string, () => Promise<RequestListener>>> = {
  async expressVerify() {
    return express().post("/", expressVerify(options), (_, response) => void response.sendStatus(200));
  },
  async fastifyVerify() {
    const app = fastify();
    await app.register(async (scope) => {
      leaveBodiesUnread(scope);
      scope.post("/", { preHandler: fastifyVerify(options) }, async () => "");
    });
    await app.ready();
    return (request, response) => app.routing(request, response);
  },
  async fetchVerify() {
    const verify = fetchVerify(options);
    return bridge(async (request) => {
      const verified = await verify(request);
      return verified.ok ? new Response("") : verified.response;
    });
  },
};

/** Sends the head of a delivery and all of its body but the last byte, or only its first byte. */
async function sendUnfinished(
  port: number,
  sent: number,
): Promise<{ socket: Socket; status: () => string | undefined }> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
  });
  const headers = Object.entries({ ...signedEvent().headers, host: "x", "content-length": MIB });
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.write(`POST / HTTP/1.1\r\n${head}\r\n`);
  await new Promise<unknown>((resolve) => socket.write(Buffer.alloc(sent, "x"), resolve));
  return { socket, status: () => answer.match(/^HTTP\/1.1 (\d+)/)?.[1] };
}

/** Lets the event loop turn: `vi.waitUntil` would move the time. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

describe.each(rows(Object.entries(LISTENERS), ([name]) => name === "expressVerify"))("%s", (_, listen) => {
  it("cuts bodies beyond 64 MiB as they stall, and the others when their time is up", async () => {
    // The clock of the budget; sockets and HTTP go by the real one.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const { port, close, server } = await serve(await listen());
    let begun = 0;
    server.on("request", () => {
      begun += 1;
    });
    onTestFinished(close);
    const stalled = await Promise.all(Array.from({ length: STALLED }, () => sendUnfinished(port, MIB - 1)));
    const dripping = await Promise.all(Array.from({ length: DRIPPING }, () => sendUnfinished(port, 1)));
    const answered = (some: typeof stalled) => some.filter(({ status }) => status() === "503").length;
    await until(() => begun === STALLED + DRIPPING);
    await idleTurns();
    expect(answered(stalled)).toBe(0);
    let ms = 0;
    for (; answered(stalled) < STALLED - 64 && ms < 2_900; ms += 100) {
      vi.advanceTimersByTime(100);
      await idleTurns();
    }
    expect(answered(stalled)).toBeGreaterThanOrEqual(STALLED - 64);
    expect(answered(stalled)).toBeLessThan(STALLED);
    expect(answered(dripping)).toBe(0);
    vi.advanceTimersByTime(3_500 - ms);
    await until(() => answered(dripping) === DRIPPING);
    expect(answered(stalled)).toBeLessThan(STALLED);
    vi.advanceTimersByTime(7_000);
    await until(() => answered(stalled) === STALLED);
    const { body, headers } = signedEvent();
    const url = `http://127.0.0.1:${port}/`;
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(200);
  });
});
