#!/usr/bin/env node
/** Runs the command `oncehook`. */
import { endingOf } from "./exit.ts";
import { program } from "./program.ts";

// A reader that is gone gets nothing more. Where that matters, the writer gets the error.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

try {
  await program().parseAsync();
} catch (error) {
  const { text, exitCode } = endingOf(error, { debug: process.argv.includes("--debug") });
  process.stderr.write(text);
  process.exitCode = exitCode;
}
