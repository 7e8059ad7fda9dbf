// TypeScript with bundler resolution: every entry has types that stand without skipLibCheck.
import { createReceiver } from "oncehook";
import * as express from "oncehook/express";
import * as fastify from "oncehook/fastify";
import * as fetch from "oncehook/fetch";
import { memoryStore } from "oncehook/memory";
import * as next from "oncehook/next";
import * as node from "oncehook/node";
import * as sqlite from "oncehook/sqlite";

const receiver = createReceiver({
  secrets: "a-consumer-secret-of-32-characters",
  store: memoryStore(),
  ack: "handled",
});
export const handle: (request: Request) => Promise<Response> = fetch.fetchWebhook(receiver);
export const entries: object[] = [express, fastify, next, node, sqlite];
