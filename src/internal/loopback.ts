/** Which hosts are this machine itself, where nothing can be read on the way. */

/** Whether an address or name is this machine's own. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
