/** `/billing`, for events of Stripe. */
import { billingWebhooks } from "../../lib/billing";

export const runtime = "nodejs";
export const { GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS } = billingWebhooks;
