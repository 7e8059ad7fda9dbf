/** Requests of other sources, signed as their providers sign them, and an event of each. */
import { createHmac } from "node:crypto";
import { refuseUnknownOptions } from "../../internal/options.ts";
import { queryIn } from "../../sources/headers.ts";
import { bodyDigestIn } from "../../sources/twilio.ts";

/** The presets of oncehook/sources whose requests can be signed here. */
export type SignedSource = "standard-webhooks" | "stripe" | "github" | "shopify" | "slack" | "twilio";

/** The secrets with which requests of other sources are signed by default. */
export const TEST_SECRETS: Readonly<Record<SignedSource, string>> = {
  "standard-webhooks": "whsec_b25jZWhvb2sgdGVzdHMgMDEyMzQ1Njc4OWFiY2RlZg==",
  stripe: "whsec_stripe_tests_0123456789abcdef",
  github: "github_tests_0123456789abcdef",
  shopify: "shopify_tests_0123456789abcdef",
  slack: "slack_tests_0123456789abcdef",
  twilio: "twilio_tests_0123456789abcdef",
};

export interface SourceSigning {
  readonly secret: string;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  /** The type in a header, for GitHub and Shopify. */
  readonly type: string | undefined;
  /** The delivery's id in a header, for all but Stripe and Slack. */
  readonly id: string | undefined;
  /** The URL that is signed, for Twilio. */
  readonly url: string;
}

type Signer = (body: Uint8Array, signing: SourceSigning) => Record<string, string>;

const seconds = (timestamp: number) => `${Math.floor(timestamp / 1000)}`;

const SIGNERS: Readonly<Record<SignedSource, Signer>> = {
  "standard-webhooks": (body, { secret, timestamp, id = "msg_000001" }) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    const time = seconds(timestamp);
    const signature = createHmac("sha256", key).update(`${id}.${time}.`).update(body).digest("base64");
    return { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": `v1,${signature}` };
  },
  stripe: (body, { secret, timestamp }) => {
    const time = seconds(timestamp);
    const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
    return { "stripe-signature": `t=${time},v1=${signature}` };
  },
  github: (body, { secret, type = "push", id = "72d3162e-cc78-11e3-81ab-4c9367dc0958" }) => ({
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    "x-github-event": type,
    "x-github-delivery": id,
  }),
  shopify: (body, { secret, type = "orders/create", id = "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043" }) => ({
    "x-shopify-hmac-sha256": createHmac("sha256", secret).update(body).digest("base64"),
    "x-shopify-topic": type,
    "x-shopify-webhook-id": id,
    "x-shopify-shop-domain": "example.myshopify.com",
  }),
  slack: (body, { secret, timestamp }) => {
    const time = seconds(timestamp);
    const signature = createHmac("sha256", secret).update(`v0:${time}:`).update(body).digest("hex");
    return { "x-slack-request-timestamp": time, "x-slack-signature": `v0=${signature}` };
  },
  twilio: (body, { secret, id = "a1b2c3d4-0000-4000-8000-000000000001", url }) => {
    const isForm = isFormOf("twilio", url);
    const fields = isForm ? [...new URLSearchParams(Buffer.from(body).toString())] : [];
    const pairs = fields.sort(([one], [other]) => (one < other ? -1 : 1)).flat();
    return {
      ...(isForm && { "content-type": "application/x-www-form-urlencoded" }),
      "x-twilio-signature": createHmac("sha1", secret)
        .update([url, ...pairs].join(""))
        .digest("base64"),
      "i-twilio-idempotency-token": id,
    };
  },
};

/** Whether events of this source are sent as a form to this URL, and not as JSON. */
export function isFormOf(source: SignedSource, url: string): boolean {
  return source === "twilio" && bodyDigestIn(queryIn(url)) === null;
}

/** The headers of one delivery. */
export function sourceHeaders(source: SignedSource, body: Uint8Array, signing: SourceSigning): Record<string, string> {
  return SIGNERS[source](body, signing);
}

export function isSignedSource(source: string): source is SignedSource {
  return Object.hasOwn(SIGNERS, source);
}

export const SIGNED_SOURCES: readonly string[] = Object.keys(SIGNERS);

export interface SourceFixtureOptions {
  /** The event's id. */
  readonly id?: string;
  /** The event's type, where the body has it. */
  readonly type?: string;
  /** Overrides fields of the event's data. */
  readonly data?: object;
}

const FIXTURE_OPTIONS = ["id", "type", "data"] as const satisfies readonly (keyof SourceFixtureOptions)[];
const CREATED = 1_760_000_000;
const AT = "2025-10-09T08:53:20Z";

function fixture<T extends object>(
  name: string,
  make: (options: SourceFixtureOptions) => T,
): (options?: SourceFixtureOptions) => T {
  return (options = {}) => {
    refuseUnknownOptions(`fixtures.${name}()`, options, FIXTURE_OPTIONS);
    return make(options);
  };
}

/** One function per preset; each returns a fresh object. */
export const sourceFixtures = {
  /** An event of Stripe. */
  stripe: fixture("stripe", ({ id = "evt_000001", type = "invoice.paid", data }) => ({
    ...{ id, object: "event", api_version: "2025-09-30.clover", created: CREATED, type, livemode: false },
    data: { object: { id: "in_000001", object: "invoice", customer: "cus_000001", status: "paid", ...data } },
  })),
  /** An event as Standard Webhooks recommends it. */
  standardWebhooks: fixture("standardWebhooks", ({ type = "user.created", data }) => ({
    ...{ type, timestamp: AT },
    data: { id: "user_000001", ...data },
  })),
  /** A push to GitHub. */
  github: fixture("github", ({ id = "6dcb09b5b57875f334f61aebed695e2e4193db5e", data }) => ({
    ...{ ref: "refs/heads/main", before: "0".repeat(40), after: id },
    repository: { id: 1, full_name: "octo-org/octo-repo" },
    pusher: { name: "octocat" },
    ...data,
  })),
  /** An order in a shop of Shopify. */
  shopify: fixture("shopify", ({ id = "820982911946154508", data }) => ({
    ...{ id: Number(id), admin_graphql_api_id: `gid://shopify/Order/${id}`, updated_at: AT, total_price: "403.00" },
    ...data,
  })),
  /** An event of Slack's Events API. */
  slack: fixture("slack", ({ id = "Ev000001", type = "app_mention", data }) => ({
    ...{ type: "event_callback", team_id: "T000001", api_app_id: "A000001", event_id: id, event_time: CREATED },
    event: { type, user: "U000001", text: "<@U000002> hello", ts: `${CREATED}.000100`, channel: "C000001", ...data },
  })),
  /** A status of a message that was sent by Twilio: `type` is the status. */
  twilio: fixture("twilio", ({ id = `SM${"0".repeat(31)}1`, type = "delivered", data }) => ({
    ...{ AccountSid: `AC${"0".repeat(31)}1`, ApiVersion: "2010-04-01", From: "+15550000001", To: "+15550000002" },
    ...{ MessageSid: id, MessageStatus: type, SmsSid: id, SmsStatus: type },
    ...data,
  })),
};
