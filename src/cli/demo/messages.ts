/** The chapters about messages: a send, what becomes of it, and a customer's answer. */
import { isOutcome, LIFETIME_MS, messageOf, type Plot, RECIPIENTS, sendOne, TEXTS } from "./plot.ts";

export async function sendToFourRecipients({ stage, report, numberId, cast }: Plot): Promise<void> {
  report.chapter("A send to four recipients");
  const { ordinary, invalid, fails, reversed } = RECIPIENTS;
  const { results, errors } = await stage.client.messages.send({
    sendFrom: numberId,
    to: [ordinary, invalid, fails, reversed],
    messageType: "SMS",
    text: TEXTS.ours,
    externalReference: "order-1",
  });
  const idOf = (to: string) => results.find((result) => result.to === to)?.messageId ?? "";
  cast.set("meets a 503", idOf(ordinary)).set("fails", idOf(fails)).set("backwards, twice", idOf(reversed));
  const duplicate = { match: { messageId: idOf(reversed) }, action: { type: "duplicate" } } as const;
  stage.emulator.control.faults.add(duplicate);
  await stage.emulator.clock.idle();
  report.check(results.length === 3, "three are queued, each a message with events of its own");
  report.check(errors[0]?.error.code === "INVALID_RECIPIENT", `one is rejected, as data: ${errors[0]?.error.code}`);
}

export async function joinSendsToOutcomes(plot: Plot): Promise<void> {
  const { stage, report, apiClientId, cast } = plot;
  report.chapter("Each send and its outcome");
  const { receiver } = stage.application;
  const outcome = (messageId: string) => receiver.waitFor({ apiClientId, messageId }, isOutcome);

  const delivered = await outcome(messageOf(plot, "meets a 503"));
  report.check(delivered.eventType === "message.delivery", "asked for after its end: delivered");
  const failed = await outcome(messageOf(plot, "fails"));
  const reason = failed.eventType === "message.failed" ? failed.data.error.code : "";
  report.check(reason === "PROVIDER_SEND_FAILED", `the one that fails says why: ${reason}`);

  const messageId = await sendOne(plot, "order-2");
  cast.set("waited for", messageId);
  const awaited = outcome(messageId);
  await stage.emulator.clock.advance(LIFETIME_MS);
  report.check((await awaited).eventType === "message.delivery", "asked for before its end: delivered");
}

export async function customerAnswers({ stage, report, apiClientId, numberId, cast }: Plot): Promise<void> {
  report.chapter("A customer answers");
  const { emulator, application } = stage;
  const { messageId } = emulator.control.inbound({ to: numberId, from: RECIPIENTS.ordinary, body: TEXTS.theirs });
  cast.set("from a customer", messageId);
  await emulator.clock.idle();
  const event = await application.receiver.waitFor({ apiClientId, messageId }, "message.inbound");
  report.check(
    event.eventType === "message.inbound" && event.data.body === TEXTS.theirs,
    "the words arrived as they were",
  );
}
