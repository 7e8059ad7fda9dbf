/** `/billing-messages`, for messages of the service. */
import { messageWebhooks } from "../../lib/billing";

export const runtime = "nodejs";
export const { GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS } = messageWebhooks;
