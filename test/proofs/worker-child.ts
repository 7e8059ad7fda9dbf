/** A process that does the work of one module. */
import { answering, givenOptions, type Work } from "./process.ts";

const { module, name } = givenOptions<Work>();
const exports = (await import(module)) as Record<string, (input: never) => unknown>;

answering({ work: exports[name] as (input: never) => unknown });
