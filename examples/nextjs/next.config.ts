/** The settings of Next.js. */
import type { NextConfig } from "next";

const config: NextConfig = {
  // Loaded by Node.js, not bundled: all routes share one copy, and with it one inbox and one worker.
  serverExternalPackages: ["oncehook", "better-sqlite3"],
  // This folder, also where a folder around it has a lock file.
  turbopack: { root: import.meta.dirname },
};

export default config;
