/** `npm run demo:crash`: a few hundred real deliveries to the Express example, which is killed while they arrive; exit 0 if all held. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { readHandled } from "../shared/handled.ts";
import { checksOf, type Run, storiesOf } from "./findings.ts";
import { createLoad, type Load, nameOf } from "./load.ts";
import { ReceiverProcess } from "./process.ts";
import { printChecks, printCounts, printGuarantee, printStories, say, title } from "./report.ts";
import { type Secrets, type Sent, sendAll } from "./sender.ts";

const SEED = 2;
const PARALLEL = 16;
const SETTLE_LIMIT_MS = 12_000;

async function main(): Promise<void> {
  const startedAt = performance.now();
  const folder = await mkdtemp(join(tmpdir(), "oncehook-crash-"));
  const load = createLoad(SEED, Date.now());
  const secret = () => randomBytes(24).toString("hex");
  const secrets = { current: secret(), previous: secret(), wrong: secret() };
  const inboxPath = join(folder, "inbox.db");
  const receiver = new ReceiverProcess({
    INBOX_PATH: inboxPath,
    WEBHOOK_SECRET: secrets.current,
    WEBHOOK_PREVIOUS_SECRET: secrets.previous,
    WEBHOOK_PREVIOUS_VALID_UNTIL: String(Date.now() + 3_600_000),
    DEMO_FAILS_TWICE: load.failsTwice.join(),
  });
  try {
    const run = await perform(receiver, { load, secrets, inboxPath });
    const stories = storiesOf(run);
    const checks = checksOf(run, stories);
    title("Arrival against handling, by sequence");
    printStories(stories);
    title("Deliveries");
    printCounts(run);
    title("Checks");
    printChecks(checks);
    title("What oncehook promises");
    printGuarantee();
    const failed = checks.filter(({ ok }) => !ok).length;
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    title(
      failed === 0
        ? `All ${checks.length} checks held, in ${seconds} s.`
        : `${failed} of ${checks.length} checks failed.`,
    );
    if (failed > 0) for (const line of receiver.log.slice(-20)) console.error(line);
    process.exitCode = failed === 0 ? 0 : 1;
  } finally {
    await receiver.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Stage {
  readonly load: Load;
  readonly secrets: Secrets;
  readonly inboxPath: string;
}

async function perform(receiver: ReceiverProcess, { load, secrets, inboxPath }: Stage): Promise<Run> {
  title(`${load.deliveries.length} deliveries over HTTP: ${load.events.length} events, shuffled, repeated and forged`);
  say(`receiver   ${await receiver.start()}`);
  say(`inbox      ${inboxPath}`);
  const acknowledged = new Set<string>();
  const killAt = load.killAt.map(nameOf);
  let answers = 0;
  let restart: Promise<number> | undefined;
  const onAnswer = ({ delivery, status }: Sent) => {
    answers += 1;
    if (restart !== undefined) return;
    if (status === 200 && delivery.event !== undefined) acknowledged.add(nameOf(delivery.event));
    if (killAt.every((name) => acknowledged.has(name))) restart = killAndRestart(receiver, answers, acknowledged);
  };
  const sent = await sendAll(load.deliveries, { secrets, parallel: PARALLEL, url: () => receiver.url, onAnswer });
  const waitingAtKill = (await restart) ?? 0;
  const state = await settled(receiver);
  const exitCode = await receiver.stop();
  return { load, sent, state, handled: readHandled(inboxPath), waitingAtKill, exitCode };
}

/** Resolves with the number of acknowledged events that the killed process had not handled. */
async function killAndRestart(receiver: ReceiverProcess, answers: number, acknowledged: ReadonlySet<string>) {
  const killedAt = performance.now();
  const handled = await receiver.killAndRestart();
  const waiting = [...acknowledged].filter((name) => !handled.has(name)).length;
  say(`killed     SIGKILL after ${answers} answers; ${waiting} acknowledged events were not handled yet`);
  say(`restarted  on the same inbox, ready again after ${Math.round(performance.now() - killedAt)} ms`);
  return waiting;
}

/** Resolves once nothing waits in the inbox any more. */
async function settled(receiver: ReceiverProcess) {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
  for (;;) {
    const state = await receiver.state();
    if (state.pending === 0 || performance.now() > deadline) return state;
    await wait(25);
  }
}

await main();
