/** Ports that `fetch` connects to for nobody, such as 5060 and 6000: the Fetch standard calls them bad, for other protocols use them. */

/** Why nothing came, and what to do about it. */
export const BAD_PORT = "fetch connects to no such port, by its standard; choose another one";

/** Whether that is what `fetch` failed with. It has no code for it. */
export function isBadPort(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message === BAD_PORT_MESSAGE;
}

/** As undici writes it: a fixed text. */
export const BAD_PORT_MESSAGE = "bad port";
