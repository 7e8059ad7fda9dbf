/** `/api/drain-billing`, for a cron. */
import { drainRoute } from "oncehook/next";
import { receiver } from "../../../lib/billing";

export const runtime = "nodejs";
export const { GET, POST } = drainRoute(receiver, {
  secret: process.env.CRON_SECRET,
  budgetMs: Number(process.env.DRAIN_BUDGET_MS ?? 45_000),
});
