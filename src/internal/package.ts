/** This package itself: its version, and the file or bundle that its code runs from. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The version of this package. A constant, because a bundle has no package.json next to it. A test compares the two. */
export const VERSION = "0.2.0";

/** The `User-Agent` of this package's requests. */
export const USER_AGENT = `oncehook/${VERSION}`;

/**
 * The path of the file that calls this, read from the stack: `import.meta` is a syntax error in code that Jest compiled to CommonJS, and
 * empty in a CommonJS bundle.
 */
export function ownFile(): string {
  const name = callerOf(ownFile)?.getFileName();
  // Without a file name, modules are resolved from the working directory.
  if (name === undefined || name === null) return join(process.cwd(), "index.js");
  return name.startsWith("file:") ? fileURLToPath(name) : name;
}

/** Resolves a package or one of its entries as code in `file` would. Does not import createRequire, because webpack replaces that import. */
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
    // Reading the stack makes V8 call prepareStackTrace.
    void holder.stack;
    return sites[0];
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}
