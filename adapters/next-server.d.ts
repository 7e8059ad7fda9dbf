/** The one function used of Next.js, declared here so that Next.js is no dependency of the build. */
declare module "next/server.js" {
  export function after(task: () => unknown): void;
}
