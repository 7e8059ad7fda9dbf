/** The environment of the server: DATABASE_URL, WEBHOOK_SECRET and CRON_SECRET. */
import { randomBytes } from "node:crypto";

/** `next build` loads every route, on a machine that should know neither the secrets nor the database. */
const building = process.env.NEXT_PHASE === "phase-production-build";

/** A secret that nobody can sign with, and a database that nobody connects to. */
const WHILE_BUILDING = {
  DATABASE_URL: "postgres://127.0.0.1/none",
  WEBHOOK_SECRET: randomBytes(32).toString("hex"),
  CRON_SECRET: randomBytes(32).toString("hex"),
};

export function readVariable(name: keyof typeof WHILE_BUILDING): string {
  const value = process.env[name] || (building ? WHILE_BUILDING[name] : undefined);
  if (value) return value;
  throw new Error(`${name} is not set.`);
}
