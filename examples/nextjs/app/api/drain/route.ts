import { drainRoute } from "oncehook/next";
import { receiver } from "../../../lib/receiver";

export const runtime = "nodejs";

/** For a cron: handles what is ready. */
export const { GET, POST } = drainRoute(receiver, { secret: process.env.CRON_SECRET });
