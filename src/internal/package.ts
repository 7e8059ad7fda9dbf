/** This package itself: its version, and the file that its code runs from. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The version of this package. A constant, because a bundle has no package.json beside it; a test compares both. */
export const VERSION = "0.1.0";

/** What requests of this package say in `User-Agent`. */
export const USER_AGENT = `oncehook/${VERSION}`;

// The file that code runs from: a file of the package, or the bundle that it was built into.

/**
 * The path of the file that calls this. From the stack, because `import.meta` is a syntax error in code that Jest compiled to CommonJS, and
 * empty in a bundle of that format.
 */
export function ownFile(): string {
  const name = callerOf(ownFile)?.getFileName();
  // Without a name nothing is beside it: modules are then looked for where the process runs.
  if (name === undefined || name === null) return join(process.cwd(), "index.js");
  return name.startsWith("file:") ? fileURLToPath(name) : name;
}

/** The path that a package or one of its entries has for code in `file`. Not by an import of createRequire, which webpack replaces. */
export function resolveFrom(file: string, name: string): string {
  return process.getBuiltinModule("node:module").createRequire(file).resolve(name);
}

function callerOf(callee: () => unknown): NodeJS.CallSite | undefined {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    let sites: NodeJS.CallSite[] = [];
    Error.stackTraceLimit = 1;
    Error.prepareStackTrace = (_error, found) => {
      sites = found;
      return "";
    };
    const holder: { stack?: string } = {};
    Error.captureStackTrace(holder, callee);
    // V8 calls the function above when the stack is read.
    void holder.stack;
    return sites[0];
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}
