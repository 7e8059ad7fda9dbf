/** `/api/drain`, for a cron: retries, gaps that ended, and what a process left behind. */
import { drainRoute } from "oncehook/next";
import { receiver } from "../../../lib/receiver";

export const runtime = "nodejs";

/** Seconds that the platform gives this function; the drain begins nothing more some time before. */
export const maxDuration = 60;

export const { GET, POST } = drainRoute(receiver, { secret: process.env.CRON_SECRET, budgetMs: 45_000 });
