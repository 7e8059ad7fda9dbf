/**
 * `npm run demo`: a first day with the service, chapter by chapter, and what goes wrong on it; exit 0 if every check held. `-- --inspect`
 * opens its inbox in the inspector afterwards.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createReceiver, type Receiver, type WebhookEvent } from "oncehook";
import { type Client, createClient } from "oncehook/client";
import { createEmulator, type Emulator } from "oncehook/emulator";
import { nodeWebhook } from "oncehook/node";
import { adoptSecret, rotateSecret, type SecretStore } from "oncehook/rotation";
import { type SqliteDatabase, sqliteSecrets, sqliteStore } from "oncehook/sqlite";
import { createHandledTable, keepRow, readHandled } from "../shared/handled.ts";
import {
  arrivalsOf,
  createLog,
  handledTwiceOf,
  isInOrder,
  type KeptLog,
  type Life,
  livesOf,
  lostOf,
  Report,
} from "./report.ts";

/** The last two are magic: the emulator treats them as their names say; see docs/emulator.md. */
const RECIPIENTS = {
  ordinary: "+14155550101",
  invalid: "0155 50101",
  fails: "+15005550002",
  reversed: "+15005550006",
} as const;
const TEXTS = { ours: "Your order is on its way.", theirs: "Thank you, see you on Friday." } as const;

/** After this much of the service's time everything has happened to a message. */
const LIFETIME_MS = 20_000;
/** The service's first retry comes a minute after a failed attempt. */
const FIRST_RETRY_MS = 60_000;
/** Between two messages during the rotation: of real time and of the service's time. */
const PACE_MS = 25;
const SECOND_MS = 1_000;
/** Far more than the rotation takes. */
const MOST_MESSAGES = 300;

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    process.exitCode = 128 + constants.signals[signal];
    stop.abort();
  });
}

const { values: flags } = parseArgs({ options: { inspect: { type: "boolean", default: false } } });

async function main(): Promise<void> {
  const startedAt = performance.now();
  const report = new Report((line) => console.log(line), stop.signal);
  try {
    await onStage(async (stage) => {
      await tellStory(stage, report);
      process.exitCode = report.end((performance.now() - startedAt) / 1_000);
      sayWhatIsNext(report);
      if (flags.inspect) await inspect(stage);
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    console.error("Stopped. Nothing is left behind.");
  }
}

/** The service's emulator, a client of it, and an application that receives its webhooks. */
interface Stage {
  readonly emulator: Emulator;
  readonly client: Client;
  readonly application: Application;
  readonly secrets: SecretStore;
  readonly inboxPath: string;
  /** All that they logged. */
  readonly log: KeptLog;
}

/** Sets the stage up on free ports and in a folder of its own, and removes both at the end, also after an error. */
async function onStage(play: (stage: Stage) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-demo-"));
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const log = createLog();
    const inboxPath = join(folder, "inbox.db");
    // Seals the secrets: openssl rand -hex 32 > webhook.key && chmod 600 webhook.key
    const keyFile = join(folder, "webhook.key");
    await writeFile(keyFile, randomBytes(32).toString("hex"), { mode: 0o600 });
    const secrets = sqliteSecrets(inboxPath, { keyFile });
    closing.push(() => secrets.close());
    for (const kind of ["delivery", "inbound"] as const)
      await adoptSecret({ secrets, kind, secret: randomBytes(32).toString("base64url") });
    const application = await startApplication(inboxPath, secrets, log);
    closing.push(() => application.stop());
    // Its time stands still until a chapter moves it. While two secrets are valid, it signs with either.
    const emulator = await createEmulator({
      startAt: Date.now(),
      logger: log,
      unspecified: { overlapSigning: "alternate" },
    });
    closing.push(() => emulator.close());
    const { url, clientId, clientSecret } = emulator;
    const client = createClient({ baseUrl: url, clientId, clientSecret, logger: log });
    await play({ emulator, client, application, secrets, inboxPath, log });
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

interface Application {
  readonly receiver: Receiver<SqliteDatabase>;
  readonly webhookUrl: string;
  /** While true, every request gets 503, as from a load balancer during a deployment. */
  isDown: boolean;
  /** The handler throws once for the next event of each of these messages. */
  readonly failOnceFor: Set<string>;
  stop(): Promise<void>;
}

/** Receives webhooks over HTTP and writes a row for each handled event to a table of its own. */
async function startApplication(inboxPath: string, secrets: SecretStore, logger: KeptLog): Promise<Application> {
  const store = sqliteStore(inboxPath, { onOpen: createHandledTable });
  const receiver = createReceiver({ secrets, store, logger, logEvents: false });
  const failOnceFor = new Set<string>();
  receiver.onAny((_event, ctx) => {
    if (failOnceFor.delete(ctx.meta.lane ?? "")) throw new Error("The customer database does not answer.");
  });
  receiver.onAny(keepRow);
  receiver.onLate(() => {});
  await receiver.start();

  const webhook = nodeWebhook(receiver);
  const server = createServer((request, response) => {
    if (application.isDown) response.writeHead(503).end();
    else webhook(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  const application: Application = {
    receiver,
    webhookUrl: `http://127.0.0.1:${port}/webhooks`,
    isDown: false,
    failOnceFor,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await receiver.stop({ until: closed });
    },
  };
  return application;
}

/** What every chapter works with. */
interface Plot {
  readonly stage: Stage;
  readonly report: Report;
  readonly apiClientId: string;
  /** The number to send from: its id, never its E.164 form. */
  readonly numberId: string;
  /** The messages of the table at the end, by their part in the story. */
  readonly cast: Map<Part, string>;
}

type Part = "meets a 503" | "fails" | "backwards, twice" | "waited for" | "handler throws" | "from a customer";

async function tellStory(stage: Stage, report: Report): Promise<void> {
  report.chapter("The service, an application and its webhooks, in one process");
  report.say(`service       ${stage.emulator.url} (the emulator)`);
  report.say(`application   ${stage.application.webhookUrl}`);
  report.say(`inbox         ${stage.inboxPath}`);
  const account = await tokenWhoamiNumbers(stage, report);
  const plot: Plot = { stage, report, ...account, cast: new Map() };
  await webhooksWithOurOwnSecret(plot);
  await sendToFourRecipients(plot);
  await receiverIsDown(plot);
  await joinSendsToOutcomes(plot);
  await handlerThrowsOnce(plot);
  await rotateDuringTraffic(plot);
  await customerAnswers(plot);
  arrivalAgainstHandling(plot);
  await nothingLost(plot);
  await nothingTold(plot);
}

async function tokenWhoamiNumbers({ client, emulator }: Stage, report: Report) {
  report.chapter("Token, whoami, numbers");
  const [me, numbers] = await Promise.all([client.whoami(), client.numbers.list()]);
  const sending = numbers.find((number) => number.status === "ACTIVE" && number.smsEnabled && number.campaignRegId);
  const tokens = emulator.control.requests().filter(({ path }) => path === "/api/auth/token");
  report.check(me.apiClientStatus === "ACTIVE", `we are ${me.apiClientName}, and ${me.apiClientStatus}`);
  report.check(tokens.length === 1, "two calls at once shared one token");
  report.check(sending !== undefined, `of ${numbers.length} numbers one is active, sends SMS and has a campaign`);
  if (sending === undefined) throw new Error("The demo needs a number to send from.");
  return { apiClientId: me.apiClientId, numberId: sending.numberId };
}

async function webhooksWithOurOwnSecret({ stage, report }: Plot): Promise<void> {
  report.chapter("Webhooks, with secrets of our own");
  const { client, secrets, application } = stage;
  const endpointUrl = application.webhookUrl;
  for (const kind of ["delivery", "inbound"] as const) {
    // The receiver has the secret already: from here on, the service signs with it.
    const secret = (await secrets.read(kind))?.current ?? "";
    await client.webhooks.update(kind, { endpointUrl, enabled: true, signingEnabled: true, secret });
  }
  const { defaults } = await client.webhooks.get();
  for (const kind of ["delivery", "inbound"] as const) {
    const { enabled, signingEnabled, hasCurrentSecret } = defaults[kind];
    report.check(enabled && signingEnabled && hasCurrentSecret, `${kind} webhooks come here, signed`);
  }
}

async function sendToFourRecipients({ stage, report, numberId, cast }: Plot): Promise<void> {
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

async function receiverIsDown(plot: Plot): Promise<void> {
  const { stage, report } = plot;
  const { application, emulator } = stage;
  report.chapter("The receiver is down for a moment");
  const messageId = messageOf(plot, "meets a 503");
  const statuses = (eventType: string) =>
    emulator.control.attempts({ messageId, eventType }).map(({ status }) => status);

  application.isDown = true;
  emulator.control.advanceMessage(messageId); // The message is sent now.
  await emulator.clock.idle();
  application.isDown = false;
  report.check(statuses("message.sent").join() === "503", "message.sent came, and met a 503");
  await emulator.clock.advance(LIFETIME_MS);
  report.check(statuses("message.delivery").join() === "200", "message.delivery overtook it: stored, and kept waiting");
  await emulator.clock.advance(FIRST_RETRY_MS);
  report.check(statuses("message.sent").join() === "503,200", "the service's retry was taken a minute later");
}

async function joinSendsToOutcomes(plot: Plot): Promise<void> {
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

async function handlerThrowsOnce(plot: Plot): Promise<void> {
  const { stage, report, apiClientId, cast } = plot;
  const { application, emulator } = stage;
  report.chapter("A handler throws");
  const messageId = await sendOne(plot, "order-3");
  cast.set("handler throws", messageId);
  application.failOnceFor.add(messageId);
  await emulator.clock.advance(LIFETIME_MS);
  await application.receiver.waitFor({ apiClientId, messageId }, isOutcome);
  const lane = await application.receiver.inbox.lane({
    source: "service",
    tenant: apiClientId,
    name: messageId,
    order: "sequence",
  });
  report.check(lane?.attempts.length === 1, "it was called again for the same event, after a second");
  const refused = emulator.control.attempts({ messageId }).filter(({ status }) => status !== 200);
  report.check(refused.length === 0, "the service noticed nothing: every delivery got its 200");
}

/** The secret is replaced while messages are on their way, without a refused delivery or a restart. */
async function rotateDuringTraffic(plot: Plot): Promise<void> {
  const { stage, report, apiClientId } = plot;
  const { client, secrets, emulator, application } = stage;
  const { receiver } = application;
  report.chapter("A new secret during traffic");
  const since = emulator.clock.now();
  let isRotated = false;
  const rotation = rotateSecret({ client, kind: "delivery", secrets, logger: stage.log }).then((result) => {
    isRotated = true;
    return result;
  });
  const isPreviousUsed = () => (receiver.counters["slot:service:previous"] ?? 0) > 0;
  const traffic = sendUntil(plot, () => isRotated && isPreviousUsed());
  const [{ receivers }, messageIds] = await Promise.all([rotation, traffic]);
  await Promise.all(messageIds.map((messageId) => receiver.waitFor({ apiClientId, messageId }, isOutcome)));

  report.check(receivers === 1, "the receiver had the new secret before the service got it");
  const statuses = emulator.control.attempts({ since, limit: 10_000 }).map(({ status }) => status);
  const taken = statuses.filter((status) => status === 200).length;
  report.check(
    taken === statuses.length && taken > 0,
    `${taken} of ${statuses.length} deliveries meanwhile were taken`,
  );
  report.check(isPreviousUsed(), "the old secret is still accepted, while the service may sign with either");
}

/** Sends one message after the other, and moves the service's time with each. */
async function sendUntil(plot: Plot, isEnough: () => boolean): Promise<string[]> {
  const { clock } = plot.stage.emulator;
  const messageIds: string[] = [];
  while (!isEnough() && messageIds.length < MOST_MESSAGES) {
    messageIds.push(await sendOne(plot, `traffic-${messageIds.length + 1}`));
    await clock.advance(SECOND_MS);
    await wait(PACE_MS);
  }
  await clock.advance(LIFETIME_MS);
  return messageIds;
}

async function customerAnswers({ stage, report, apiClientId, numberId, cast }: Plot): Promise<void> {
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

function arrivalAgainstHandling({ stage, report, cast }: Plot): void {
  report.chapter("Arrival against handling, by sequence (✗: not taken, and tried again)");
  const lives = allLives(stage);
  const rows = [...cast].flatMap(([part, messageId]) => {
    const life = lives.find((one) => one.messageId === messageId);
    return life === undefined ? [] : [[messageId, arrivalsOf(life), life.handled.join(" "), part]];
  });
  report.table(["message", "arrived", "handled", ""], rows);
  report.say(`and ${lives.length - rows.length} more, sent during the rotation`);
}

async function nothingLost({ stage, report }: Plot): Promise<void> {
  report.chapter("All messages");
  const lives = allLives(stage);
  const sum = (count: (life: Life) => number) => lives.reduce((total, life) => total + count(life), 0);
  const [made, lost, twice] = [sum((life) => life.made.length), sum(lostOf), sum(handledTwiceOf)];
  report.check(made > 0 && lost === 0, `${made - lost} of ${made} events were handled`);
  report.check(twice === 0, `${twice} were handled twice`);
  const ordered = lives.filter(isInOrder).length;
  report.check(ordered === lives.length, `${ordered} of ${lives.length} messages were handled in ascending sequence`);
  const { receiver } = stage.application;
  const { gauges, counters } = await receiver.inbox.stats();
  report.check(counters.duplicates > 0, `${counters.duplicates} deliveries were known already, and only counted`);
  report.check(gauges.pending + gauges.dead + gauges.quarantined === 0, "nothing waits for a retry or for a person");
}

/** Looks for secrets, tokens, numbers and texts in all that was printed and logged. */
async function nothingTold({ stage, report }: Plot): Promise<void> {
  const { emulator, secrets, log } = stage;
  const { tables } = emulator.control.exportState();
  const kinds = await Promise.all([secrets.read("delivery"), secrets.read("inbound")]);
  const webhookSecrets = kinds.flatMap((slots) => [
    slots?.current ?? [],
    slots?.previous.map(({ secret }) => secret) ?? [],
  ]);
  const tokens = Object.keys(tables.tokens ?? {});
  const people = [
    ...Object.values(RECIPIENTS),
    ...emulator.control.numbers().map(({ e164 }) => e164),
    ...Object.values(TEXTS),
  ];
  const hidden = [emulator.clientSecret, ...webhookSecrets.flat(), ...tokens, ...people];
  const told = [...report.lines, ...log.lines].join("\n");
  report.check(
    tokens.length > 0 && !hidden.some((text) => told.includes(text)),
    `none of ${hidden.length} secrets, tokens, numbers and texts is in the output, or in the ${log.lines.length} lines of log`,
  );
}

/** Sends to the ordinary recipient. Returns the message's id. */
async function sendOne({ stage, numberId }: Plot, externalReference: string): Promise<string> {
  const sent = await stage.client.messages.send({
    sendFrom: numberId,
    to: [RECIPIENTS.ordinary],
    messageType: "SMS",
    text: TEXTS.ours,
    externalReference,
  });
  return sent.throwIfRejected().results[0]?.messageId ?? "";
}

function sayWhatIsNext(report: Report): void {
  report.chapter("Next");
  if (!flags.inspect) report.say("npm run demo -- --inspect   shows these messages in the inspector, in a browser");
  report.say(
    "docs/tutorials/             your own receiver, step by step: Express, Fastify, Next.js, Hono, NestJS, Lambda",
  );
  report.say("docs/README.md              everything else");
}

/** Serves the inbox to a browser until Ctrl-C. */
async function inspect({ inboxPath }: Stage): Promise<void> {
  const child = spawn(process.execPath, ["dist/cli.js", "inspect", "--store", inboxPath], { stdio: "inherit" });
  stop.signal.addEventListener("abort", () => child.kill());
  await once(child, "exit");
}

/** The events that can end a message. */
function isOutcome({ eventType }: WebhookEvent): boolean {
  return eventType === "message.delivery" || eventType === "message.failed";
}

function messageOf({ cast }: Plot, part: Part): string {
  const messageId = cast.get(part);
  if (messageId === undefined) throw new Error(`No message "${part}" was sent.`);
  return messageId;
}

/** Everything that the service made and delivered, against everything that the application handled. */
function allLives({ emulator, inboxPath }: Stage): Life[] {
  const filter = { limit: 10_000 };
  return livesOf(emulator.control.events(filter), emulator.control.attempts(filter), readHandled(inboxPath));
}

await main();
