/** The verification libraries that are compared with. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { SECRET } from "./deliveries.ts";
import { importPeer, peerPackages } from "./peer-packages.ts";

/** Signs `body` as its service would, and returns what the receiving side then has to do for each request; a promise is awaited. */
export type Peer = (body: Buffer) => () => unknown;

export interface Peers {
  readonly bare: Peer;
  readonly stripe: Peer;
  readonly standardwebhooks: Peer;
  readonly svix: Peer;
  readonly octokit: Peer;
}

/** The few functions of each library that are called here. */
interface Stripe {
  new (
    key: string,
  ): {
    readonly webhooks: {
      constructEvent(body: Buffer, header: string, secret: string): unknown;
      generateTestHeaderString(options: { payload: string; secret: string }): string;
    };
  };
}
interface StandardWebhook {
  new (
    secret: string,
  ): {
    sign(id: string, timestamp: Date, body: string): string;
    verify(body: Buffer, headers: Record<string, string>): unknown;
  };
}
/** Of `@octokit/webhooks-methods`, which verifies and leaves the parsing to its caller. */
type OctokitVerify = (secret: string, body: string, signature: string) => Promise<boolean>;

export async function loadPeers(): Promise<Peers> {
  const require = peerPackages();
  const octokit = await importPeer("@octokit/webhooks-methods/dist-node/index.js");
  return {
    bare,
    stripe: stripePeer(require("stripe")),
    standardwebhooks: standardPeer(require("standardwebhooks").Webhook, "webhook"),
    svix: standardPeer(require("svix").Webhook, "svix"),
    octokit: octokitPeer(octokit.verify as OctokitVerify),
  };
}

/** The least that verifies this service's signature: no header is checked, and no age. */
const bare: Peer = (body) => {
  const timestamp = `${Date.now()}`;
  const signature = createHmac("sha256", SECRET).update(`${timestamp}.`).update(body).digest("hex");
  return () => {
    const expected = createHmac("sha256", SECRET).update(`${timestamp}.`).update(body).digest();
    return timingSafeEqual(expected, Buffer.from(signature, "hex"));
  };
};

function stripePeer(Stripe: Stripe): Peer {
  const { webhooks } = new Stripe("sk_test_none");
  return (body) => {
    const header = webhooks.generateTestHeaderString({ payload: body.toString(), secret: SECRET });
    return () => webhooks.constructEvent(body, header, SECRET);
  };
}

function standardPeer(Webhook: StandardWebhook, prefix: string): Peer {
  const webhook = new Webhook(`whsec_${Buffer.from(SECRET).toString("base64")}`);
  return (body) => {
    const now = new Date();
    const headers = {
      [`${prefix}-id`]: "msg_1",
      [`${prefix}-timestamp`]: `${Math.floor(now.getTime() / 1000)}`,
      [`${prefix}-signature`]: webhook.sign("msg_1", now, body.toString()),
    };
    return () => webhook.verify(body, headers);
  };
}

/** It takes text only; what arrives are bytes. */
function octokitPeer(verify: OctokitVerify): Peer {
  return (body) => {
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    return async () => {
      if (!(await verify(SECRET, body.toString(), signature))) throw new Error("octokit refused its own signature.");
    };
  };
}
