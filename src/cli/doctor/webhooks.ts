/** The default webhooks of the API client, as the service has them. */
import type { WebhookConfig, WebhookDefaults } from "../../client/types.ts";
import type { WebhookKind } from "../../internal/webhook-kind.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { FAULTS, faultOf, isSameUrl, shownUrl } from "./target.ts";

/** Where webhooks should go. */
export interface Expected {
  /** Null when it was not said. */
  readonly url: string | null;
  /** The service runs on this machine. */
  readonly isLocal: boolean;
}

export function webhookFindings({ defaults, overridesSummary }: WebhookDefaults, expected: Expected): Finding[] {
  const { inboundOverrideCount, deliveryOverrideCount } = overridesSummary;
  return [
    ...kindFindings("inbound", defaults.inbound, { ...expected, overrides: inboundOverrideCount }),
    ...kindFindings("delivery", defaults.delivery, { ...expected, overrides: deliveryOverrideCount }),
  ];
}

function kindFindings(
  kind: WebhookKind,
  config: WebhookConfig,
  { url, isLocal, overrides }: Expected & { readonly overrides: number },
): Finding[] {
  const { enabled, signingEnabled, hasCurrentSecret, endpointUrl } = config;
  const update = `client.webhooks.update("${kind}", …)`;
  const findings: Finding[] = [];
  const found = (code: string, what: string, fix: string) =>
    findings.push(problem(code, `The ${kind} webhook ${what}.`, fix));
  if (!enabled) {
    // Numbers with a target of their own may be all that is wanted.
    const make = overrides > 0 ? warning : problem;
    findings.push(make("webhook_disabled", `The ${kind} webhook is not enabled.`, `${update} with enabled: true.`));
  }
  if (!signingEnabled)
    found("webhook_unsigned", "is not signed: receivers refuse it", `${update} with signingEnabled: true.`);
  else if (!hasCurrentSecret)
    found("webhook_without_secret", "is signed, but has no secret", `${update} with a secret, or rotateSecret().`);
  // No table of the specification shows the target, so a service may keep it to itself (WHK-14).
  if (endpointUrl === null && overrides === 0)
    found("webhook_without_target", "has no target", `${update} with endpointUrl.`);
  if (typeof endpointUrl === "string") findings.push(...targetFindings(kind, endpointUrl, { url, isLocal }));
  return findings.length > 0 ? findings : [ok(`webhook_${kind}`, `The ${kind} webhook is enabled and signed.`)];
}

function targetFindings(kind: WebhookKind, target: string, { url, isLocal }: Expected): Finding[] {
  const what = `The ${kind} webhook's target, ${shownUrl(target)},`;
  const fault = faultOf(target, isLocal);
  if (fault !== null) return [problem(fault, `${what} ${FAULTS[fault][0]}.`, FAULTS[fault][1])];
  if (url === null || isSameUrl(target, url)) return [];
  const fix = `client.webhooks.update("${kind}", …) with endpointUrl, or give --url what is right.`;
  return [problem("webhook_elsewhere", `${what} is not the address of --url.`, fix)];
}
