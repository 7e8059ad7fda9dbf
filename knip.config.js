// What the unused-code gate (knip) starts from: the entries of the package, and everything that a command or a test runs by its name.
import { readFileSync } from "node:fs";

const { compilerOptions } = JSON.parse(readFileSync(new URL("tsconfig.json", import.meta.url), "utf8"));

export default {
  entry: [
    ...Object.values(compilerOptions.paths).flat(),
    "src/tools/cli/main.ts",
    "src/tools/inspector/page/main.tsx",
    "scripts/*.{ts,mjs}",
    "scripts/docs/*.mjs",
    "scripts/house/request.ts",
    "bench/*.ts",
    "examples/{demo,demo-crash}/*.ts",
    "examples/servers/*/*.ts",
    "examples/{express,express-stripe,fastify-postgres,docker-compose}/server.ts",
    "test/**/*.test.ts",
    "test/setup/*.ts",
    "test/proofs/run.ts",
    "test/**/*{child,server}.ts", "test/proofs/planted/candidates.ts",
  ],
  project: [
    "{src,adapters,bench,test}/**/*.{ts,tsx}",
    "scripts/**/*.{ts,mjs}",
    "examples/{demo-crash,shared,servers}/**/*.ts",
  ],
  ignore: ["test/consumers/**", "test/proofs/orms/apps/**", "test/next/billing/**"],
  // They are run, or are what examples in the docs install.
  ignoreDependencies: [
    "@arethetypeswrong/cli",
    "next",
    "publint",
  ],
  ignoreExportsUsedInFile: { interface: true, type: true },
  ignoreBinaries: [
    "strace",
    "openssl",
    "pgbench",
    "redis-server",
    "mkfifo",
    "mount",
    "sqlite3",
    "pgbouncer",
    "umount",
    "unshare",
    "slowhttptest",
  ],
};
