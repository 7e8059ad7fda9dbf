/** The same receiver in the pages router: `/api/webhooks-pages`. */
import { nextPagesWebhook } from "oncehook/next";
import { receiver } from "../../lib/receiver";

/** The signature covers the raw bytes. */
export const config = { api: { bodyParser: false } };

export default nextPagesWebhook(receiver);
