/** The option `alerts` of a receiver: where its alerts go, and how they are posted. */
import { SetupError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { propertyOf } from "../internal/foreign-error.ts";
import { choiceOption, invalidOption, refuseUnknownOptions, wrongType } from "../internal/options.ts";
import { signPayload } from "../sources/messaging/sign.ts";
import { checkSecret } from "../sources/secret.ts";
import { NotTaken } from "./alert-watch.ts";
import { type Alert, type AlertOptions, type AlertRoute, alertLimits } from "./alerts.ts";

const SLACK = "hooks.slack.com";

/** @throws SetupError naming the option and the fix */
export function alertRoute(options: AlertOptions | undefined, clock: Clock): AlertRoute | null {
  if (options === undefined) return null;
  refuseUnknownOptions("alerts", options, ["to", "when", "secret", "format"]);
  const limits = alertLimits(options.when);
  const { to, secret, format } = options;
  if (typeof to === "function") {
    refuseWithFunction("secret", secret);
    refuseWithFunction("format", format);
    const call = async (alert: Alert) => void (await to(alert));
    return { to: "function", limits, send: call };
  }
  const url = urlOption(to);
  const usual = url.hostname === SLACK ? "slack" : "json";
  const form = choiceOption("alerts.format", format, usual, ["json", "slack"]);
  const checked = secretOption(secret, form);
  return {
    to: url.host,
    limits,
    send: (alert, signal) => post(url, requestOf(alert, { form, secret: checked, now: clock.now() }), signal),
  };
}

function refuseWithFunction(name: "secret" | "format", value: unknown): void {
  if (value === undefined) return;
  const message = `Option "alerts.${name}" is for a URL: leave it out, because alerts.to is a function.`;
  throw new SetupError("invalid_option", message, { fields: { option: `alerts.${name}` } });
}

function urlOption(to: unknown): URL {
  const rule = 'must be a function, or a URL such as "https://alerts.example.com/oncehook" without a password';
  const text = to instanceof URL ? to.href : to;
  if (typeof text !== "string" || !URL.canParse(text)) throw invalidOption("alerts.to", rule, to);
  const url = new URL(text);
  const isHttp = url.protocol === "https:" || url.protocol === "http:";
  if (isHttp && url.username === "" && url.password === "") return url;
  throw invalidOption("alerts.to", rule, to);
}

/** Slack knows no signature of ours, so its messages need no secret. */
function secretOption(secret: string | undefined, form: "json" | "slack"): string | null {
  if (secret === undefined && form === "slack") return null;
  if (typeof secret !== "string") {
    const rule = "must be a text of at least 16 bytes, with which the destination verifies alerts";
    throw wrongType("alerts.secret", rule, secret, "invalid_secret");
  }
  checkSecret("alerts.secret", secret);
  return secret;
}

interface Writing {
  readonly form: "json" | "slack";
  readonly secret: string | null;
  readonly now: number;
}

interface AlertRequest {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** The body of a repeat is the same. Its signature has another timestamp. */
function requestOf(alert: Alert, { form, secret, now }: Writing): AlertRequest {
  const body = JSON.stringify(form === "slack" ? slackBody(alert) : alert);
  const signed = secret === null ? {} : signPayload({ body, secret, timestamp: now });
  return { headers: { "content-type": "application/json", "idempotency-key": alert.id, ...signed }, body };
}

/** `text` is shown in notifications, the blocks in the channel. */
function slackBody({ receiver, status, text, id }: Alert): object {
  const said = escaped(`[${status}] ${receiver}: ${text}`);
  return {
    text: said,
    blocks: [
      { type: "section", text: { type: "mrkdwn", text: said } },
      { type: "context", elements: [{ type: "mrkdwn", text: escaped(id) }] },
    ],
  };
}

/** As Slack asks for it. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Follows no redirect: the signature is for one destination. */
async function post(url: URL, { headers, body }: AlertRequest, signal: AbortSignal): Promise<void> {
  const answer = await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" }).catch(
    (error: unknown) => {
      throw new NotTaken(networkCode(error));
    },
  );
  await answer.body?.cancel();
  if (!answer.ok) throw new NotTaken(`http_${answer.status}`);
}

/** Such as `ECONNREFUSED`. The message of the error may hold the address. */
function networkCode(error: unknown): string {
  const code = propertyOf(propertyOf(error, "cause"), "code");
  return typeof code === "string" ? code : "unreachable";
}
