/** `npm run prove -- NAME [--full | --small]`: runs a proof programme, `all` runs each; without a name it lists them. The last line says what was shown. */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Terminal } from "../../src/tools/cli/terminal.ts";
import { proveAll, proveApart } from "./all.ts";
import { clockJumps } from "./clock.ts";
import { crash } from "./crash.ts";
import { diskFaults } from "./disk.ts";
import { durable } from "./durable.ts";
import { endToEnd } from "./e2e.ts";
import { examples } from "./first-steps/examples.ts";
import { tutorials } from "./first-steps/tutorials.ts";
import { forwarding } from "./forward.ts";
import { fuzz } from "./fuzz.ts";
import { hosts } from "./hosts/programme.ts";
import { leak } from "./leak.ts";
import { acrossMachines } from "./machines.ts";
import { mutants } from "./mutants/programme.ts";
import { operators } from "./operators.ts";
import { orms } from "./orms/programme.ts";
import { outages } from "./outages.ts";
import { planted } from "./planted/programme.ts";
import { postgres } from "./postgres.ts";
import { power } from "./power.ts";
import type { Programme } from "./programme.ts";
import { races } from "./race.ts";
import { rates } from "./rates.ts";
import { rotations } from "./rotations.ts";
import { sends } from "./sends.ts";
import { sidecar } from "./sidecar.ts";
import { simulation } from "./sim.ts";
import { slowAttackers } from "./slow.ts";
import { steadyLoad } from "./soak.ts";
import { syscall } from "./syscall.ts";

/** In this order `all` starts them: the two longest first, lest all wait for one of them at the end. */
const PROGRAMMES: readonly Programme[] = [
  mutants,
  planted,
  clockJumps,
  crash,
  diskFaults,
  durable,
  endToEnd,
  examples,
  forwarding,
  fuzz,
  hosts,
  leak,
  acrossMachines,
  operators,
  orms,
  outages,
  postgres,
  power,
  races,
  rates,
  rotations,
  sends,
  sidecar,
  simulation,
  slowAttackers,
  steadyLoad,
  syscall,
  tutorials,
];

const { values, positionals } = parseArgs({
  options: { full: { type: "boolean", default: false }, small: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [wanted] = positionals;
const programme = PROGRAMMES.find(({ name }) => name === wanted);
const small = PROGRAMMES.filter(({ hasSmallForm }) => hasSmallForm);
const isAsked = values.small ? !values.full && small.some(({ name }) => name === wanted) : true;
if (programme !== undefined && isAsked) await prove(programme);
else if (wanted === "all" && isAsked) await proveEach();
else {
  console.error("usage: npm run prove -- NAME|all [--full]");
  for (const { name, what } of PROGRAMMES) console.error(`  ${name.padEnd(12)} ${what}`);
  console.error(`In a small form, without controls: NAME --small, of ${small.map(({ name }) => name).join(", ")}`);
  process.exitCode = 2;
}

async function proveEach(): Promise<void> {
  const flags = values.full ? ["--full"] : [];
  const prove = (name: string) => proveApart(name, flags);
  // One more than there are cores, for each of them waits now and then.
  const passed = await proveAll(PROGRAMMES, { atOnce: availableParallelism() + 1, prove, say: console.log });
  process.exitCode = passed === PROGRAMMES.length ? 0 : 1;
}

async function prove({ name, run }: Programme): Promise<void> {
  const startedAt = performance.now();
  const terminal = new Terminal({});
  const say = (line: string) => {
    terminal.clear();
    console.log(line);
  };
  const { count, unit, problems } = await terminal.during(`Proving ${name}:`, () => run({ ...values, say }));
  for (const problem of problems) console.log(`FAIL  ${problem}`);
  const ok = problems.length === 0 && count > 0;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  console.log(`${ok ? "pass" : "FAIL"}  ${name}: ${count} ${unit} in ${seconds} s`);
  process.exitCode = ok ? 0 : 1;
}
