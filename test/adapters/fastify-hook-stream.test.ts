/** A stream that a preParsing hook put in the request's place, and that fails when nobody reads it. */
import { errorMonitor } from "node:events";
import { createGunzip } from "node:zlib";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { expect, it, onTestFinished } from "vitest";
import { fastifyInspector, fastifyVerify, fastifyWebhook, leaveBodiesUnread } from "../../adapters/fastify.ts";
import { uncaughtErrors } from "../support/uncaught.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver, SECRET, signedEvent } from "./receivers.ts";

const { headers } = signedEvent();

/** Resolves once each request to `path` was answered, and what stood in its place has failed. */
async function statusesBehindGunzip(mount: (app: FastifyInstance) => unknown, requests: readonly RequestInit[]) {
  const ends: Promise<unknown>[] = [];
  const app = Fastify({ forceCloseConnections: true });
  onTestFinished(() => app.close());
  app.addHook("preParsing", async (_request, _reply, payload) => {
    const unzipped = payload.pipe(createGunzip());
    ends.push(new Promise((resolve) => unzipped.once(errorMonitor, resolve)));
    return unzipped;
  });
  await mount(app);
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  const statuses: number[] = [];
  for (const request of requests) {
    const { status } = await fetch(`${address}/webhooks`, { method: "POST", body: "not compressed", ...request });
    statuses.push(status);
  }
  await Promise.all(ends);
  return statuses;
}

it("fastifyWebhook() answers what it refuses before the body, whatever becomes of the stream (RCV-2)", async () => {
  const { receiver } = memoryReceiver({ maxBodyBytes: 1_024 });
  const errors = uncaughtErrors();
  const statuses = await statusesBehindGunzip(
    (app) => app.register(fastifyWebhook, { receiver, path: "/webhooks" }),
    [
      {},
      { method: "PATCH" },
      { headers: { ...headers, "content-encoding": "gzip" } },
      { headers, body: "not compressed".repeat(100) },
    ],
  );
  expect([statuses, errors]).toEqual([[401, 405, 415, 413], []]);
});

it("fastifyVerify() does (RCV-2)", async () => {
  const errors = uncaughtErrors();
  const statuses = await statusesBehindGunzip(
    (app) =>
      app.register(async (scope) => {
        leaveBodiesUnread(scope);
        scope.post("/webhooks", { preHandler: fastifyVerify({ secrets: SECRET }) }, () => "never");
      }),
    [{}],
  );
  expect([statuses, errors]).toEqual([[401], []]);
});

it("fastifyInspector() does", async () => {
  const errors = uncaughtErrors();
  const { inspector } = inspectorAt<FastifyRequest>("/webhooks");
  const statuses = await statusesBehindGunzip((app) => app.register(fastifyInspector, { inspector }), [{}]);
  expect([statuses, errors]).toEqual([[200], []]);
});
