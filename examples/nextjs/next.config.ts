import type { NextConfig } from "next";

const config: NextConfig = {
  // Loaded by Node.js and not bundled: all routes then share one copy, and with it one inbox and one worker.
  serverExternalPackages: ["oncehook", "better-sqlite3"],
};

export default config;
