/** The numbers of the API client: whether they can send, and whether their webhooks come here. */
import type { PhoneNumber, WebhookDefaults } from "../../client/types.ts";
import { counted } from "../inbox/printable.ts";
import { type Finding, named, ok, problem, warning } from "./finding.ts";
import { isSameUrl } from "./target.ts";
import type { Expected } from "./webhooks.ts";

interface NumbersExpected extends Expected {
  /** Null where the service does not show them. */
  readonly defaults: WebhookDefaults | null;
}

/** What keeps a number from sending, each with its mend. */
const LACKS: readonly (readonly [code: string, lacks: (number: PhoneNumber) => boolean, what: string, fix: string])[] =
  [
    ["number_inactive", ({ status }) => status !== "ACTIVE", "not ACTIVE", "Ask the service's operators."],
    [
      "number_without_sms",
      ({ smsEnabled }) => !smsEnabled,
      "without SMS",
      "client.numbers.update(id, { smsEnabled: true })",
    ],
    [
      "number_without_campaign",
      ({ campaignRegId }) => !campaignRegId,
      "without a campaign",
      "client.numbers.update(id, { campaignregId: … }), with a small r.",
    ],
  ];

export function numberFindings(numbers: readonly PhoneNumber[], expected: NumbersExpected): Finding[] {
  if (numbers.length === 0)
    return [problem("no_numbers", "The client has no number.", "Ask the service's operators to assign one.")];
  const isUsable = (number: PhoneNumber) => LACKS.every(([, lacks]) => !lacks(number));
  const usable = numbers.filter(isUsable).length;
  // One that rests may be meant so, as long as another can send.
  const make = usable > 0 ? warning : problem;
  const lacking = LACKS.flatMap(([code, lacks, what, fix]) => {
    const ids = numbers.filter(lacks).map(({ numberId }) => numberId);
    return ids.length === 0 ? [] : [make(code, `${counted(ids.length, "number")} ${what}: ${named(ids)}.`, fix)];
  });
  return [
    ok("numbers", `${usable} of ${counted(numbers.length, "number")} can send SMS.`),
    ...lacking,
    ...overrideFindings(numbers, expected),
  ].filter(({ code }) => usable > 0 || code !== "numbers");
}

/** An override goes before the default, so deliveries of such a number never come to where the default leads. */
function overrideFindings(numbers: readonly PhoneNumber[], { url, defaults }: NumbersExpected): Finding[] {
  const inbound = url ?? defaults?.defaults.inbound.endpointUrl;
  const delivery = url ?? defaults?.defaults.delivery.endpointUrl;
  const isElsewhere = (target: string | null | undefined, wanted: string | null | undefined) =>
    typeof target === "string" && !(typeof wanted === "string" && isSameUrl(target, wanted));
  const ids = numbers
    .filter(
      ({ webhookInboundOverride, webhookDeliveryOverride }) =>
        isElsewhere(webhookInboundOverride, inbound) || isElsewhere(webhookDeliveryOverride, delivery),
    )
    .map(({ numberId }) => numberId);
  if (ids.length === 0) return [];
  const what = `${counted(ids.length, "number")} with a webhook target of its own that leads elsewhere: ${named(ids)}.`;
  const fix = "client.numbers.update(id, { webhookInboundOverride: null, webhookDeliveryOverride: null })";
  return [url === null ? warning("number_overridden", what, fix) : problem("number_overridden", what, fix)];
}
