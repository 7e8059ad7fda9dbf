/** `node scripts/run.mjs test/proofs/planted/candidates.ts [ROOM …]`: the mutants that rooms.ts samples, and which of them mutants.ts does not know. */
import { fileURLToPath } from "node:url";
import { MUTANTS, STRUCK_OUT, UNSEEN } from "./mutants.ts";
import { sampledFrom } from "./mutations.ts";
import { ROOMS } from "./rooms.ts";

/** From where this file is compiled to. */
const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const wanted = process.argv.slice(2);
const known = new Set([...MUTANTS, ...STRUCK_OUT, ...UNSEEN].map(({ room, name }) => `${room} ${name}`));

for (const room of ROOMS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  for (const mutant of sampledFrom(ROOT, room)) {
    const { name, edit } = mutant;
    console.log(`${known.has(`${room.name} ${name}`) ? "known" : "NEW  "} ${JSON.stringify(mutant, null, 2)}`);
    console.log(`      ${edit.file}`);
  }
}
