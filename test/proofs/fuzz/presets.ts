/** Deliveries of other providers. One that is intact is accepted. One that was changed, is too old, too new or signed by another key is not. */
import { createReceiver, type IncomingWebhook } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { github, hmacSource, shopify, slack, standardWebhooks, stripe, twilio } from "../../../src/sources/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import {
  createFakeClock,
  fixtures,
  incomingOf,
  type SignedRequest,
  type SignedSource,
  signedRequest,
  TEST_SECRETS,
  tampered,
} from "../../../src/tools/testing/index.ts";

const URL = "https://example.com/webhooks";
const HOUR_MS = 3_600_000;
/** Of each header and body so many places are changed. */
const PLACES = 40;
/** Headers that no provider signs. */
const UNSIGNED = /^(?:content-type|x-github-|x-shopify-(?!hmac)|i-twilio-)/;
const UNTIMED: readonly string[] = ["github", "shopify", "twilio"];
/** Whose late events need a handler. */
const BY_POSITION = ["stripe", "twilio"] as const;
const ANOTHER = "another_secret_0123456789abcdef0123456789";

/** The last one is Standard Webhooks, described as data. */
function sources() {
  const described = hmacSource({
    ...{ preset: "described", header: "webhook-signature", encoding: "base64", key: "base64", lastRetryMs: HOUR_MS },
    prefix: "v1,",
    ...{ timestamp: "webhook-timestamp", signed: "{header:webhook-id}.{timestamp}.{body}" },
    identity: { header: "webhook-id" },
  });
  return {
    "standard-webhooks": standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"] }),
    stripe: stripe({ secrets: TEST_SECRETS.stripe }),
    github: github({ secrets: TEST_SECRETS.github }),
    shopify: shopify({ secrets: TEST_SECRETS.shopify }),
    slack: slack({ secrets: TEST_SECRETS.slack }),
    twilio: twilio({ secrets: TEST_SECRETS.twilio, url: URL }),
    described: described({ secrets: TEST_SECRETS["standard-webhooks"].replace("whsec_", "") }),
  };
}
type Name = keyof ReturnType<typeof sources>;

const EVENTS: Readonly<Record<SignedSource, object>> = {
  "standard-webhooks": fixtures.standardWebhooks(),
  stripe: fixtures.stripe(),
  github: fixtures.github(),
  shopify: fixtures.shopify(),
  slack: fixtures.slack(),
  twilio: fixtures.twilio(),
};

export interface PresetsOutcome {
  readonly cases: number;
  readonly problems: readonly string[];
}

export async function refuseForgedPresets(): Promise<PresetsOutcome> {
  try {
    return await forgedPresets();
  } catch (error) {
    return { cases: 0, problems: [`the sources of other providers cannot be made: ${String(error)}`] };
  }
}

async function forgedPresets(): Promise<PresetsOutcome> {
  const all = sources();
  const names = Object.keys(all) as Name[];
  const clock = createFakeClock();
  const store = memoryStore({ volatile: true });
  const receiver = createReceiver({ sources: all, store, clock, logger: silentLogger });
  for (const name of names) receiver.source(name).onAny(() => {});
  for (const name of BY_POSITION) receiver.source(name).onLate(() => {});
  const problems: string[] = [];
  let cases = 0;
  const expect = async (name: Name, what: string, request: SignedRequest, wanted: number) => {
    cases += 1;
    const incoming: IncomingWebhook = { ...incomingOf(request), url: "/webhooks" } as IncomingWebhook;
    const { status } = await receiver.source(name).handle(incoming);
    const said =
      wanted === 200 ? `was refused with ${status}, though it is rightly signed` : `was answered with ${status}`;
    if (status !== wanted) problems.push(`${name}, ${what}: ${said}`);
  };
  for (const name of names) {
    const sign = (options: { readonly secret?: string; readonly timestamp?: number } = {}) =>
      signedAs(name, { timestamp: clock.now(), ...options });
    await expect(name, "as it was signed", sign(), 200);
    for (const [what, forged] of forgeries(sign(), sign({ secret: ANOTHER }))) await expect(name, what, forged, 401);
    if (UNTIMED.includes(name)) continue;
    await expect(name, "an hour old", sign({ timestamp: clock.now() - HOUR_MS }), 401);
    await expect(name, "from the next hour", sign({ timestamp: clock.now() + HOUR_MS }), 401);
  }
  await receiver.stop();
  return { cases, problems };
}

function signedAs(name: Name, options: { readonly secret?: string; readonly timestamp: number }): SignedRequest {
  const source = name === "described" ? "standard-webhooks" : name;
  return signedRequest(EVENTS[source], { source, ...options });
}

function* forgeries(signed: SignedRequest, byAnother: SignedRequest): Iterable<readonly [string, SignedRequest]> {
  yield ["signed with another secret", byAnother];
  const bits = signed.body.length * 8;
  for (let place = 0; place < PLACES; place++)
    yield [`a bit of the body flipped (${place})`, tampered(signed, Math.floor((place * bits) / PLACES))];
  yield ["a longer body", { ...signed, body: Buffer.concat([signed.body, Buffer.from(" ")]) }];
  for (const [header, value] of Object.entries(signed.headers).filter(([name]) => !UNSIGNED.test(name))) {
    const { [header]: _gone, ...others } = signed.headers;
    yield [`without ${header}`, { ...signed, headers: others }];
    yield [`with an empty ${header}`, { ...signed, headers: { ...others, [header]: "" } }];
    for (const index of placesIn(value))
      yield [
        `with ${header} changed at ${index}`,
        { ...signed, headers: { ...others, [header]: changed(value, index) } },
      ];
  }
}

function placesIn(value: string): readonly number[] {
  const count = Math.min(PLACES, value.length);
  return Array.from({ length: count }, (_, place) => Math.floor((place * value.length) / count));
}

/** Another letter or digit, of base64 and of hex; the last ones of base64 may stand for no bits. */
function changed(value: string, index: number): string {
  const character = value[index] ?? "";
  return value.slice(0, index) + (character === "4" ? "7" : "4") + value.slice(index + 1);
}
