/** `/api/drain`, for a cron: retries, gaps that ended, and events that a process left behind. */
import { drainRoute } from "oncehook/next";
import { receiver } from "../../../lib/receiver";

export const runtime = "nodejs";

export const { GET, POST } = drainRoute(receiver, { secret: process.env.CRON_SECRET });
