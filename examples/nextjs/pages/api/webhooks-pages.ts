import { nextPagesWebhook } from "oncehook/next";
import { receiver } from "../../lib/receiver";

/** The signature covers the raw bytes. */
export const config = { api: { bodyParser: false } };

/** The same receiver behind the pages router: `/api/webhooks-pages`. */
export default nextPagesWebhook(receiver);
