/** The settings of Next.js. */
import type { NextConfig } from "next";

const config: NextConfig = {
  // Loaded by Node.js and not bundled: all routes then share one copy, and with it one inbox and its one connection.
  serverExternalPackages: ["oncehook", "pg"],
  // This folder, although the repository around it has a lockfile too.
  turbopack: { root: import.meta.dirname },
};

export default config;
