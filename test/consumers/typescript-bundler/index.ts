// TypeScript with bundler resolution: every entry has types that stand without skipLibCheck.
import { createReceiver } from "oncehook";
import * as express from "oncehook/express";
import * as fastify from "oncehook/fastify";
import * as fetch from "oncehook/fetch";
import { memoryStore } from "oncehook/memory";
import * as next from "oncehook/next";
import * as node from "oncehook/node";
import * as postgres from "oncehook/postgres";
import * as sqlite from "oncehook/sqlite";

const receiver = createReceiver({
  secrets: "a-consumer-secret-of-32-characters",
  store: memoryStore(),
  ack: "handled",
});
export const handle: (request: Request) => Promise<Response> = fetch.fetchWebhook(receiver);
// Without the drivers' types.
createReceiver({
  secrets: "a-consumer-secret-of-32-characters",
  store: postgres.postgresStore("postgres://db.internal/app"),
}).onAny((_event, ctx) => ctx.commit((tx) => tx.query("select 1")));
export const entries: object[] = [express, fastify, next, node, postgres, sqlite];
