/** The chapters in which something goes wrong. */
import { isOutcome, LIFETIME_MS, messageOf, type Plot, sendOne } from "./plot.ts";

/** The service's first retry comes a minute after an attempt that was not taken. */
const FIRST_RETRY_MS = 60_000;

export async function receiverIsDown(plot: Plot): Promise<void> {
  const { stage, report } = plot;
  const { application, emulator } = stage;
  report.chapter("The receiver is down for a moment");
  const messageId = messageOf(plot, "meets a 503");
  const statuses = (eventType: string) =>
    emulator.control.attempts({ messageId, eventType }).map(({ status }) => status);

  application.isDown = true;
  emulator.control.advanceMessage(messageId); // It is sent, now.
  await emulator.clock.idle();
  application.isDown = false;
  report.check(statuses("message.sent").join() === "503", "message.sent came, and met a 503");
  await emulator.clock.advance(LIFETIME_MS);
  report.check(statuses("message.delivery").join() === "200", "message.delivery overtook it: stored, and kept waiting");
  await emulator.clock.advance(FIRST_RETRY_MS);
  report.check(statuses("message.sent").join() === "503,200", "the service's retry was taken a minute later");
}

export async function handlerThrowsOnce(plot: Plot): Promise<void> {
  const { stage, report, apiClientId, cast } = plot;
  const { application, emulator } = stage;
  report.chapter("A handler throws");
  const messageId = await sendOne(plot, "order-3");
  cast.set("handler throws", messageId);
  application.failOnceFor.add(messageId);
  await emulator.clock.advance(LIFETIME_MS);
  await application.receiver.waitFor({ apiClientId, messageId }, isOutcome);
  const lane = await application.receiver.inbox.lane({ tag: "outbound", apiClientId, messageId });
  report.check(lane?.attempts.length === 1, "it was called again for the same event, after a second");
  const refused = emulator.control.attempts({ messageId }).filter(({ status }) => status !== 200);
  report.check(refused.length === 0, "the service saw nothing of it: every delivery got its 200");
}
