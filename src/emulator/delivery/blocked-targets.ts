/** Says early which targets the egress guard will block, as far as a URL shows it: what a name means is known when it is looked up. */
import type { Settings } from "../options.ts";
import { createEgressGuard, type EgressSettings } from "./egress.ts";

/** The targets that an emulator starts with. Neither field nor text holds the URL: it may have credentials. */
export function warnOfBlockedTargets(settings: Settings): void {
  for (const option of ["inboundUrl", "deliveryUrl"] as const) {
    const reason = refusalOf(settings, settings[option]);
    if (reason !== null)
      settings.logger.warn({ option, reason }, `Webhooks to ${option} will be blocked: it ${reason}.`);
  }
}

/** For the request log, about the targets that a call set. */
export function blockedTargetWarnings(
  settings: EgressSettings,
  targets: Readonly<Record<string, string | null | undefined>>,
): string[] {
  return Object.entries(targets).flatMap(([field, url]) => {
    const reason = refusalOf(settings, url);
    return reason === null ? [] : [`webhooks to this ${field} will be blocked: it ${reason}`];
  });
}

function refusalOf(settings: EgressSettings, url: string | null | undefined): string | null {
  return url === null || url === undefined ? null : createEgressGuard(settings).refusalOf(url);
}
