/** The first chapters: who we are, and where webhooks go. */
import type { Plot } from "./plot.ts";
import type { Report } from "./report.ts";
import type { Stage } from "./stage.ts";

export async function tokenWhoamiNumbers({ client, emulator }: Stage, report: Report) {
  report.chapter("Token, whoami, numbers");
  const [me, numbers] = await Promise.all([client.whoami(), client.numbers.list()]);
  const sending = numbers.find((number) => number.status === "ACTIVE" && number.smsEnabled && number.campaignRegId);
  const tokens = emulator.control.requests().filter(({ path }) => path === "/api/auth/token");
  report.check(me.apiClientStatus === "ACTIVE", `we are ${me.apiClientName}, and ${me.apiClientStatus}`);
  report.check(tokens.length === 1, "two calls at once shared one token");
  report.check(sending !== undefined, `of ${numbers.length} numbers one is active, sends SMS and has a campaign`);
  if (sending === undefined) throw new Error("Without a number to send from there is no story.");
  return { apiClientId: me.apiClientId, numberId: sending.numberId };
}

export async function webhooksWithOurOwnSecret({ stage, report }: Plot): Promise<void> {
  report.chapter("Webhooks, with secrets of our own");
  const { client, secrets, application } = stage;
  const endpointUrl = application.webhookUrl;
  for (const kind of ["delivery", "inbound"] as const) {
    // The receiver has it already: from here on, the service signs with it.
    const secret = (await secrets.read(kind))?.current ?? "";
    await client.webhooks.update(kind, { endpointUrl, enabled: true, signingEnabled: true, secret });
  }
  const { defaults } = await client.webhooks.get();
  for (const kind of ["delivery", "inbound"] as const) {
    const { enabled, signingEnabled, hasCurrentSecret } = defaults[kind];
    report.check(enabled && signingEnabled && hasCurrentSecret, `${kind} webhooks come here, signed`);
  }
}
