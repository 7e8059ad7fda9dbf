/** `npm run prove -- leak`: 10,000 requests full of marked secrets, numbers and texts (`--full` 100,000): none of them is said anywhere. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextRound } from "node:timers/promises";
import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { unheardControls } from "./leak/control.ts";
import { Ears } from "./leak/ears.ts";
import { ALL_MARKS } from "./leak/marks.ts";
import { askEverything, constructionErrors } from "./leak/operator.ts";
import { requestOf } from "./leak/requests.ts";
import { Paths, SCENES, type Scene } from "./leak/scenes.ts";
import { hearProcess, hearTelemetry, watchReceiver } from "./leak/watching.ts";
import type { Programme, Proof } from "./programme.ts";

const SHORT = 10_000;
const FULL = 100_000;
const SMALL = 2_000;
const BATCH = 50;

/** Ways that must have been taken, or the run shows nothing about them. */
const PATHS = [
  ...["accepted 200", "duplicate 200", "conflict 200", "late 200", "quarantined 200", "handled 200", "dead 200"],
  ...["refused 400", "refused 401", "refused 405", "refused 413", "refused 415", "failed 500", "failed 503"],
  ...["attempt handled", "attempt unhandled", "attempt retry", "attempt dead"],
];

export const leak: Programme = {
  name: "leak",
  what: "no marked secret, number or text in any log, error, metric, trace, channel or answer, whatever goes wrong",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const fewer = small ? SMALL : SHORT;
    const requests = full ? FULL : fewer;
    const ears = new Ears();
    const paths = new Paths();
    const folder = mkdtempSync(join(tmpdir(), "oncehook-leak-"));
    api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const stopHearing = hearProcess(ears);
    try {
      const each = Math.ceil(requests / Object.keys(SCENES).length);
      for (const make of Object.values(SCENES)) await play(make({ ears, folder }), { ears, paths, requests: each });
      constructionErrors(ears);
    } finally {
      stopHearing();
      rmSync(folder, { recursive: true, force: true });
    }
    for (const [source, times] of ears.heard) say(`${source.padEnd(14)} heard ${times} times`);
    const taken = [...paths.taken].map(([path, times]) => `${path} ${times}`);
    say(taken.toSorted().join(", "));
    return {
      count: requests,
      unit: `requests with ${ALL_MARKS.length} marks`,
      problems: [...problemsOf(ears, paths), ...(small ? [] : await unheard())],
    };
  },
};

async function play(
  scene: Scene,
  { ears, paths, requests }: { ears: Ears; paths: Paths; requests: number },
): Promise<void> {
  const { clock, receiver } = scene;
  const telemetry = hearTelemetry(ears);
  if (receiver !== null) {
    watchReceiver(receiver, telemetry);
    receiver.instrument(paths);
    await receiver.start();
  }
  for (let first = 0; first < requests; first += BATCH) {
    scene.between?.(first / BATCH);
    const answers = Array.from({ length: Math.min(BATCH, requests - first) }, (_, index) =>
      scene.handle(requestOf(first + index, clock.now(), scene.signers())),
    );
    for (const answer of await whilePassing(scene.clock, Promise.all(answers))) ears.hear("answer", answer);
    // The log of refusals is sampled by the second.
    await clock.advance(1_000);
    if (first % (BATCH * 10) === 0) await telemetry.collect();
  }
  scene.between?.(0);
  await clock.advance(60_000);
  if (receiver !== null) {
    await askEverything(receiver, ears);
    await receiver.stop({ timeoutMs: 0 });
  }
  await telemetry.collect();
}

/** Lets time pass until the answers are there: some wait, as for secrets that are read again. */
async function whilePassing<T>(clock: Scene["clock"], answers: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  answers.then(over, over);
  for (let round = 1; !isOver; round++) {
    await nextRound();
    if (round % 20 === 0) await clock.advance(500);
  }
  return answers;
}

function problemsOf(ears: Ears, paths: Paths): readonly string[] {
  const leaks = ears.leaks.map(({ source, mark, said }) => `${source} said ${JSON.stringify(mark)}: ${said}`);
  const silent = [...ears.heard]
    .filter(([, times]) => times === 0)
    .map(([source]) => `nothing was heard from ${source}`);
  const untaken = PATHS.filter((path) => !paths.taken.has(path)).map((path) => `no request went the way "${path}"`);
  const unheard = ears.remarks === 0 ? ["no log said what an error of the application says"] : [];
  return [...leaks.slice(0, 20), ...silent, ...untaken, ...unheard];
}

/** The controls: a leak in each source. */
async function unheard(): Promise<readonly string[]> {
  return (await unheardControls()).map((source) => `a planted leak in ${source} was not found`);
}
