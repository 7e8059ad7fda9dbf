/** The only function of Next.js that is used, declared here so that the build does not depend on Next.js. */
declare module "next/server.js" {
  export function after(task: () => unknown): void;
}
