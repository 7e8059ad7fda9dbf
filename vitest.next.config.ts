/** `npm run test:next`: the Next.js examples, installed, built and started for real; minutes, so not part of `npm test`. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/next/**/*.test.ts"],
    globalSetup: ["test/setup/build.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 15_000 } },
  },
});
