/** The routes of the Express example: webhooks, an ordinary JSON route next to them, and what a supervisor asks. */
import express, { type Express } from "express";
import type { Receiver } from "oncehook";
import { expressWebhook } from "oncehook/express";
import type { SqliteDatabase } from "oncehook/sqlite";
import { readinessStatus } from "../../shared/health.ts";

export function createApp(receiver: Receiver<SqliteDatabase>): Express {
  const app = express();
  app.disable("x-powered-by");

  // Before any body parser: the signature covers the raw bytes. All methods: others than POST and PUT get their 405.
  app.all("/webhooks", expressWebhook(receiver));

  app.use(express.json());
  app.post("/api/echo", (request, response) => {
    response.json(request.body);
  });
  app.get("/healthz", (_request, response) => {
    response.json({ status: "ok" });
  });
  app.get("/readyz", async (_request, response) => {
    const health = await receiver.health();
    response.status(readinessStatus(health)).json(health);
  });
  return app;
}
