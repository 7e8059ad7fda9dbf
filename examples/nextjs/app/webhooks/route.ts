/** `/webhooks`: answers when the event is stored, and handles it after the response. */
import { webhooks } from "../../lib/receiver";

export const runtime = "nodejs";

// Every method, so that all but POST and PUT get the receiver's 405.
export const { GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS } = webhooks;
